import {
  type DimensionColumn,
  dimensionValuesOfCall,
  NO_DIMENSION,
  USAGE_SUMS_KEY,
  SUM_KINDS,
  type SumKind,
} from '../../src/store/sum-kinds.ts'

/** The statement that adds sums of calls to every kind of a unit, without the store. */
export function addSums(
  unit: SumKind['unit'],
  start: number,
  by: Partial<Readonly<Record<DimensionColumn, string | number>>>,
  sums: Readonly<Record<string, number>>,
): string {
  const call = { user_id: 1, token_id: 1, model: 'm', channel: 'c', group_name: 'default' }
  const given = { ...NO_DIMENSION, ...call, ...by }
  const rows = SUM_KINDS.filter((kind) => kind.unit === unit).map((kind) => {
    const dimensions = dimensionValuesOfCall(kind, given).map((value) => `'${value}'`)
    return `(${[kind.kind, start, ...dimensions, ...Object.values(sums)].join(', ')})`
  })
  const columns = Object.keys(sums)
  return `INSERT INTO usage_sums (${[...USAGE_SUMS_KEY, ...columns].join(', ')}) VALUES ${rows.join(', ')}
    ON CONFLICT (${USAGE_SUMS_KEY.join(', ')}) DO UPDATE SET
    ${columns.map((name) => `${name} = usage_sums.${name} + excluded.${name}`).join(', ')}`
}

/** The condition for rows of the kind with this name. */
export function kindIs(name: string): string {
  const found = SUM_KINDS.find((kind) => kind.name === name)
  if (!found) throw new Error(`there are no sums ${name}`)
  return `kind = ${found.kind}`
}
