//! Where stages begin and end: transfers cut what a device runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::launches::{Launches, Role};
use crate::line::{Line, Piece, Times};
use divi_planner::units::Micros;

/// A tensor on its way to a device, for the first launch there that reads it.
pub(crate) struct Moving {
    pub(crate) tensor: usize,
    /// The launch that has computed it.
    pub(crate) from: usize,
    pub(crate) reader: usize,
    pub(crate) to: usize,
    /// Ascending; those that are not on the device yet.
    pub(crate) inputs: Vec<u32>,
}

/// Every transfer: a tensor moves once to each device that reads it, for each input; and how many reads across devices
/// there are. Readers are asked in the order in which their device runs them, the model's outputs last. Where the plan says
/// when tensors move, one goes to a device for all inputs at once, with the first reader.
pub(crate) fn moves(launches: &Launches, line: &Line) -> (Vec<Moving>, usize) {
    let mut moves: Vec<Moving> = Vec::new();
    let mut crossing = 0;
    let outputs = (0..launches.all.len()).filter(|launch| launches.role[*launch] == Role::Output);
    let tasks = line.alive().flat_map(|piece| line.pieces[piece].launches.iter().copied());
    // Which inputs are there, and the first of the transfers that brought them.
    let mut there: BTreeMap<(usize, usize, usize), (BTreeSet<u32>, usize)> = BTreeMap::new();
    for reader in tasks.chain(outputs) {
        let to = line.device_of(launches, reader);
        for read in &launches.reads[reader] {
            if line.device_of(launches, read.launch) == to {
                continue;
            }
            crossing += 1;
            let (known, first) =
                there.entry((to, read.tensor, read.launch)).or_insert_with(|| (BTreeSet::new(), moves.len()));
            let mut inputs = launches.shared_inputs(read.launch, reader);
            inputs.retain(|input| known.insert(*input));
            if *first < moves.len() && !launches.listed.is_empty() {
                moves[*first].inputs = known.iter().copied().collect();
            } else if !inputs.is_empty() {
                moves.push(Moving { tensor: read.tensor, from: read.launch, reader, to, inputs });
            }
        }
    }
    (moves, crossing)
}

/// One piece a launch, in the order of the launches; ports are none.
pub(crate) fn single(launches: &Launches, order: &[usize]) -> Line {
    let tasks = order.iter().filter(|launch| launches.role[**launch] == Role::Task);
    let piece = |launch: &usize| Piece { device: launches.all[*launch].device, launches: vec![*launch] };
    Line::new(launches, tasks.map(piece).collect())
}

/// Joins neighbours in a device's line where nothing leaves from the first of them and nothing comes for the second.
///
/// No time changes. Before, the second piece waits for nothing but its device: what it reads from elsewhere was there when
/// the first began. So it begins when the first ends, and runs at the same time as a part of it; nobody elsewhere reads
/// what the first computes, so nobody notices that this is there only when both have run.
pub(crate) fn join(launches: &Launches, line: &Line, times: &Times) -> Line {
    let comes = arrivals(launches, line, times);
    let leaves = |piece: &Piece| {
        let mut handed = piece.launches.iter().flat_map(|launch| &launches.read_by[*launch]);
        handed.any(|handed| line.device_of(launches, handed.launch) != piece.device)
    };
    let inputs = |piece: &Piece| &launches.all[piece.launches[0]].inputs;
    let mut pieces: Vec<Piece> = Vec::new();
    for on_device in &line.on_device {
        // When the piece that may get longer began, and when it ends.
        let mut open: Option<(Micros, Micros)> = None;
        for &index in on_device {
            let piece = &line.pieces[index];
            let (begin, end) = (times.begin[index], times.end[index]);
            let fits = |before: &Piece| inputs(before) == inputs(piece);
            let waits_for_none = |open: &(Micros, Micros)| comes[index] <= open.0 && begin <= open.1;
            let joined = match (open.filter(waits_for_none), pieces.last_mut().filter(|before| fits(before))) {
                (Some((begin, _)), Some(before)) => {
                    before.launches.extend(&piece.launches);
                    begin
                }
                _ => {
                    pieces.push(piece.clone());
                    begin
                }
            };
            open = (!leaves(piece)).then_some((joined, end));
        }
    }
    Line::new(launches, pieces)
}

/// For each piece, when the last transfer for it arrives; never where it is what brings a tensor of another stage to the
/// device: such a piece begins a stage, however early the plan has it arrive.
fn arrivals(launches: &Launches, line: &Line, times: &Times) -> Vec<Micros> {
    let mut comes = vec![0.0; line.pieces.len()];
    for moving in moves(launches, line).0 {
        if let (Some(reader), Some(_)) = (line.piece_of(moving.reader), line.piece_of(moving.from)) {
            comes[reader] = f64::INFINITY;
        }
    }
    for piece in line.alive() {
        let to = line.pieces[piece].device;
        for read in line.pieces[piece].launches.iter().flat_map(|launch| &launches.reads[*launch]) {
            let from = line.device_of(launches, read.launch);
            if from != to {
                let done = line.piece_of(read.launch).map_or(times.start[read.launch], |piece| times.end[piece]);
                let (_, arrival) = launches.moved(read.tensor, from, to, read.count, done);
                comes[piece] = f64::max(comes[piece], arrival);
            }
        }
    }
    comes
}
