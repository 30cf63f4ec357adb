/** Stands in for what only streams need, in dialects that have none. */
export function unstreamed(): never {
  throw new Error('this dialect has no streams')
}
