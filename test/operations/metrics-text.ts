import { call } from '../fixtures/client.ts'

/** A line with a sample. */
export interface Line {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric as its page declares it, with its samples. */
export interface Family {
  readonly type: string
  readonly lines: readonly Line[]
}

/** A page of metrics. */
export interface Page {
  readonly families: ReadonlyMap<string, Family>
  /** The sum of all samples of that name that have these labels; 0 without any. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
}

const SUFFIXES = new Map([
  ['histogram', ['_bucket', '_sum', '_count']],
  ['counter', ['']],
  ['gauge', ['']],
])

/**
 * Reads Prometheus' text format 0.0.4, as strictly as the format allows: each family once, HELP and TYPE
 * before its samples, no series twice, complete histograms with cumulative buckets. Throws at the first
 * violation.
 */
export function readMetrics(text: string): Page {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, { type: string; lines: Line[] }>()
  const seen = new Set<string>()
  let current: { name: string; type: string; lines: Line[] } | undefined
  let helped = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const [, help] = /^# HELP ([a-z_][a-z0-9_]*) [^\n]+$/.exec(line) ?? []
    const [, typed, type = ''] = /^# TYPE ([a-z_][a-z0-9_]*) (\w+)$/.exec(line) ?? []
    if (help !== undefined) helped = help
    else if (typed !== undefined) {
      if (helped !== typed || families.has(typed) || !SUFFIXES.has(type))
        throw new Error(`misplaced: ${line}`)
      if (type === 'counter' && !typed.endsWith('_total')) throw new Error(`no name of a counter: ${typed}`)
      current = { name: typed, type, lines: [] }
      families.set(typed, current)
    } else {
      const read = readLine(line)
      const allowed = SUFFIXES.get(current?.type ?? '')?.map((suffix) => `${current?.name}${suffix}`)
      if (!current || !allowed?.includes(read.name)) throw new Error(`in no family: ${line}`)
      const series = line.slice(0, line.lastIndexOf(' '))
      if (seen.has(series)) throw new Error(`twice: ${series}`)
      seen.add(series)
      current.lines.push(read)
    }
  }
  for (const [name, family] of families) if (family.type === 'histogram') checkHistogram(name, family.lines)
  return {
    families,
    sum: (name, labels = {}) =>
      [...families.values()]
        .flatMap(({ lines }) => lines)
        .filter((line) => line.name === name)
        .filter((line) => Object.entries(labels).every(([label, value]) => line.labels[label] === value))
        .reduce((sum, { value }) => sum + value, 0),
  }
}

/** The metrics of a gateway on this machine. */
export async function metricsOf(url: string): Promise<Page> {
  const { status, headers, text } = await call(url, undefined, { method: 'GET', path: '/metrics' })
  if (status !== 200) throw new Error(`/metrics answered ${status}: ${text}`)
  if (!/^text\/plain; version=0\.0\.4(;|$)/.test(headers['content-type'] ?? ''))
    throw new Error(`no content type of the format: ${headers['content-type']}`)
  return readMetrics(text)
}

function readLine(line: string): Line {
  const [, name = '', , pairs = '', value = ''] =
    /^([a-z_][a-z0-9_]*)(\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?(?:[0-9.]+(?:e[+-]?\d+)?|Inf)|NaN)$/.exec(
      line,
    ) ?? []
  if (name === '') throw new Error(`no line of figures: ${line}`)
  const labels: Record<string, string> = {}
  for (const [, label = '', text = ''] of pairs.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)) {
    if (label in labels) throw new Error(`a label twice: ${line}`)
    labels[label] = text
  }
  return { name, labels, value: Number(value) }
}

function checkHistogram(name: string, lines: readonly Line[]): void {
  const series = new Map<string, Line[]>()
  for (const line of lines) {
    const { le: _, ...labels } = line.labels
    const key = JSON.stringify(labels)
    series.set(key, [...(series.get(key) ?? []), line])
  }
  for (const [key, own] of series) {
    const buckets = own.filter((line) => line.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => (labels['le'] === '+Inf' ? Infinity : Number(labels['le'])))
    const grows = (values: readonly number[]): boolean =>
      values.every((v, i) => i === 0 || v >= (values[i - 1] ?? 0))
    const count = own.find((line) => line.name === `${name}_count`)?.value
    const whole = own.some((line) => line.name === `${name}_sum`) && buckets.at(-1)?.value === count
    if (!whole || bounds.at(-1) !== Infinity || !grows(bounds) || !grows(buckets.map(({ value }) => value)))
      throw new Error(`no histogram: ${name} ${key}`)
  }
}
