/** Characters that are kept of the two ends of a long id. */
const START = 10
const END = 8

/** An id in a table. A long id is shown by its two ends, as the first half of ids of one time is alike; the tooltip shows the whole id. */
export function TruncatedId({ id }: { readonly id: string }) {
  const isLong = id.length > START + END + 1
  return <span title={id}>{isLong ? `${id.slice(0, START)}…${id.slice(-END)}` : id}</span>
}
