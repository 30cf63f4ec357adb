/** The result of a case in the report. */
export interface Row {
  readonly agent: string
  readonly model: string
  readonly upstream: 'demo' | 'strict'
  readonly path: string
  readonly converted: boolean
  /** Number of charged calls. */
  readonly calls: number
  /** Seconds from the agent's start to its end, and from its first call to its end. */
  readonly seconds: number
  readonly working: number
  readonly result: 'passed' | 'failed' | 'not installed'
  readonly faults: readonly string[]
}

const HEAD = ['agent', 'model', 'upstream', 'path', 'calls', 'seconds', 'working', 'result']

/** The rows as a table for people, with a summary line. */
export function asTable(rows: readonly Row[]): string {
  const cells = rows.map(({ agent, model, upstream, path, converted, calls, seconds, working, result }) => [
    agent,
    model,
    upstream,
    `${path}${converted ? ' (converted)' : ''}`,
    String(calls),
    seconds.toFixed(1),
    working.toFixed(1),
    result === 'passed' ? result : result.toUpperCase(),
  ])
  const widths = HEAD.map((name, at) => Math.max(name.length, ...cells.map((row) => row[at]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd()
  return [
    '',
    line(HEAD),
    line(widths.map((width) => '-'.repeat(width))),
    ...cells.map(line),
    '',
    sum(rows),
  ].join('\n')
}

/** The rows as JSON, with the numbers of each result. */
export function asJson(rows: readonly Row[]): string {
  return JSON.stringify(
    {
      passed: count(rows, 'passed'),
      failed: count(rows, 'failed'),
      not_installed: count(rows, 'not installed'),
      cases: rows,
    },
    null,
    2,
  )
}

function sum(rows: readonly Row[]): string {
  const missing = count(rows, 'not installed')
  const left = missing > 0 ? `, ${missing} without an agent` : ''
  return `${count(rows, 'passed')} passed, ${count(rows, 'failed')} failed${left}`
}

function count(rows: readonly Row[], result: Row['result']): number {
  return rows.filter((row) => row.result === result).length
}
