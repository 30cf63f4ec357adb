/** Stands in for what only streams need, on roads that have none. */
export function unstreamed(): never {
  throw new Error('there are no streams on this road')
}
