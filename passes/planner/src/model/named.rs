//! Enums whose variants have names that users type.

/// Names the variants of an enum: `ALL`, `name`, `Display`, and `FromStr` with an error that lists the names.
macro_rules! named {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// All variants, in the order of their names' list.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name that users type.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::model::error::Error;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Self::ALL.into_iter().find(|variant| variant.name() == name).ok_or_else(|| {
                    let names = Self::ALL.map(Self::name).join(", ");
                    $crate::model::error::Error::Unsupported(format!("unknown {} '{name}'; expected one of {names}", $what))
                })
            }
        }
    };
}

pub(crate) use named;
