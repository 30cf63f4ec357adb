/** Placeholder for the stream functions of a dialect without streams. */
export function unstreamed(): never {
  throw new Error('this dialect has no streams')
}
