/**
 * Maximum number of values in one statement: databases limit the number of parameters, and long statements
 * block.
 */
const MAX_VALUES = 5_000

/** Runs a statement for some values at a time, and joins the rows. */
export async function inChunks<Value, Row>(
  values: readonly Value[],
  run: (some: readonly Value[]) => Promise<readonly Row[]>,
  size = MAX_VALUES,
): Promise<Row[]> {
  const rows: Row[] = []
  for (let start = 0; start < values.length; start += size)
    for (const row of await run(values.slice(start, start + size))) rows.push(row)
  return rows
}
