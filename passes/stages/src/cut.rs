//! Stage boundaries: transfers cut the task sequence of a device.

use std::collections::{BTreeMap, BTreeSet};

use crate::launches::{Launches, Role};
use crate::line::{Line, Piece, Times};
use divi_planner::units::Micros;

/// A transfer to a device, caused by the first launch there that reads the tensor.
pub(crate) struct Moving {
    pub(crate) tensor: usize,
    /// The producing launch.
    pub(crate) from: usize,
    pub(crate) reader: usize,
    pub(crate) to: usize,
    /// Inputs that are not on the device yet, sorted.
    pub(crate) inputs: Vec<u32>,
}

/// Returns all transfers and the number of reads across devices. A tensor is transferred once to each consuming device, for
/// each input. Consumers are visited in the execution order of their device, model outputs last. If the plan lists its
/// transfers, a tensor is transferred to a device for all inputs at once, for the first consumer.
pub(crate) fn moves(launches: &Launches, line: &Line) -> (Vec<Moving>, usize) {
    let mut moves: Vec<Moving> = Vec::new();
    let mut crossing = 0;
    let outputs = (0..launches.all.len()).filter(|launch| launches.role[*launch] == Role::Output);
    let tasks = line.alive().flat_map(|piece| line.pieces[piece].launches.iter().copied());
    // Inputs already on the device, and the index of the first transfer of the tensor to it.
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

/// Builds one piece per launch, in the order of the launches; ports are in no piece.
pub(crate) fn single(launches: &Launches, order: &[usize]) -> Line {
    let tasks = order.iter().filter(|launch| launches.role[**launch] == Role::Task);
    let piece = |launch: &usize| Piece { device: launches.all[*launch].device, launches: vec![*launch] };
    Line::new(launches, tasks.map(piece).collect())
}

/// Joins consecutive pieces of a device if nothing leaves from the first and nothing arrives for the second.
///
/// Times do not change. The operands of the second piece from other devices arrive before the first begins, so the second
/// runs right after the first, joined or not. No other device reads the results of the first, so their later availability
/// has no effect.
pub(crate) fn join(launches: &Launches, line: &Line, times: &Times) -> Line {
    let comes = arrivals(launches, line, times);
    let leaves = |piece: &Piece| {
        let mut handed = piece.launches.iter().flat_map(|launch| &launches.read_by[*launch]);
        handed.any(|handed| line.device_of(launches, handed.launch) != piece.device)
    };
    let inputs = |piece: &Piece| &launches.all[piece.launches[0]].inputs;
    let mut pieces: Vec<Piece> = Vec::new();
    for on_device in &line.on_device {
        // Begin and end of the piece that may be extended.
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

/// Splits pieces so that a task begins a piece on a device for all groups of inputs, or for none, and ends one likewise:
/// one function then serves all groups of a size.
pub(crate) fn split_alike(launches: &Launches, line: &Line) -> Line {
    let node = |launch: &usize| launches.all[*launch].node;
    let (mut begins, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for piece in line.alive().map(|piece| &line.pieces[piece]) {
        begins.extend(piece.launches.first().map(|launch| (piece.device, node(launch))));
        ends.extend(piece.launches.last().map(|launch| (piece.device, node(launch))));
    }
    let mut pieces = Vec::new();
    for Piece { device, launches: own } in line.alive().map(|piece| &line.pieces[piece]) {
        let joined = |one: &usize, next: &usize| {
            !ends.contains(&(*device, node(one))) && !begins.contains(&(*device, node(next)))
        };
        pieces.extend(own.chunk_by(joined).map(|part| Piece { device: *device, launches: part.to_vec() }));
    }
    Line::new(launches, pieces)
}

/// Returns the latest arrival of a transfer for each piece; infinite if the piece is the first consumer of a tensor of
/// another piece. Such a piece begins a stage, even if the plan lists an earlier arrival.
fn arrivals(launches: &Launches, line: &Line, times: &Times) -> Vec<Micros> {
    let mut comes = vec![Micros::ZERO; line.pieces.len()];
    for moving in moves(launches, line).0 {
        if let (Some(reader), Some(_)) = (line.piece_of(moving.reader), line.piece_of(moving.from)) {
            comes[reader] = Micros::INFINITY;
        }
    }
    for piece in line.alive() {
        let to = line.pieces[piece].device;
        for read in line.pieces[piece].launches.iter().flat_map(|launch| &launches.reads[*launch]) {
            let from = line.device_of(launches, read.launch);
            if from != to {
                let done = line.piece_of(read.launch).map_or(times.start[read.launch], |piece| times.end[piece]);
                let (_, arrival) = launches.moved(*read, from, to, done);
                comes[piece] = Micros::max(comes[piece], arrival);
            }
        }
    }
    comes
}
