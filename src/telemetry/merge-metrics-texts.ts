import { type MetricRow, METRICS } from './metric-table.ts'

const MERGES = { largest: Math.max, smallest: Math.min } as const

const ROWS: ReadonlyMap<string, MetricRow> = new Map(Object.values(METRICS).map((row) => [row.name, row]))

/**
 * Merges the `metricsText` of several processes. A series stands where it stands in the first text that
 * contains it. The values of a series are added up, or merged as the metric defines. With `countersOnly`,
 * gauges are omitted.
 */
export function mergeMetricsTexts(
  texts: readonly string[],
  { countersOnly = false }: { readonly countersOnly?: boolean } = {},
): string {
  const families = new Map<string, { readonly head: string[]; readonly values: Map<string, number> }>()
  for (const text of texts) {
    let family: { readonly head: string[]; readonly values: Map<string, number> } | undefined
    let name = ''
    for (const line of text.split('\n')) {
      const [, kind, called = '', type] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
      if (kind === 'HELP') {
        name = called
        family = families.get(name) ?? { head: [], values: new Map() }
        families.set(name, family)
        if (family.head.length < 2) family.head[0] = line
      } else if (kind === 'TYPE' && family) {
        family.head[1] = line
        if (countersOnly && type === 'gauge') {
          families.delete(name)
          family = undefined
        }
      } else if (family) addSample(family.values, line, mergeOf(name))
    }
  }
  const lines = [...families.values()].flatMap(({ head, values }) => [
    ...head,
    ...[...values].map(([series, value]) => `${series} ${value}`),
  ])
  return `${lines.join('\n')}\n`
}

function mergeOf(name: string): (one: number, other: number) => number {
  const { merge } = ROWS.get(name) ?? {}
  return merge ? MERGES[merge] : (one, other) => one + other
}

function addSample(
  values: Map<string, number>,
  line: string,
  merge: (one: number, other: number) => number,
): void {
  const at = line.lastIndexOf(' ')
  if (at < 0) return
  const series = line.slice(0, at)
  const value = Number(line.slice(at + 1))
  const before = values.get(series)
  if (before === undefined) values.set(series, value)
  else values.set(series, merge(before, value))
}
