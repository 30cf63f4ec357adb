import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { JSON_ROUTES } from '../../src/api/json-routes.ts'
import { RAW_ROUTES } from '../../src/api/raw-routes.ts'
import { ALERTS } from '../../src/domain/alert.ts'
import { type MetricRow, METRICS } from '../../src/telemetry/metric-table.ts'
import { COUNTS } from '../../src/telemetry/metrics.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The cells of the rows of the first table after a text on a page. */
function rowsAfter(path: string, text: string): string[][] {
  const after = readFileSync(join(ROOT, path), 'utf8').split(text)[1] ?? ''
  const table = /^\|.*\n\|[-| ]+\n((?:\|.*\n)+)/m.exec(after)?.[1] ?? ''
  return table
    .trim()
    .split('\n')
    .map((row) =>
      row
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
}

/** Names in a cell, each in code marks. */
function namesIn(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

/** Rows in the order of their texts. */
function inOrder(rows: readonly unknown[]): string[] {
  return rows.map((row) => JSON.stringify(row)).sort()
}

test('docs/operations.md lists every metric of the gateway with its labels', () => {
  const listed = rowsAfter('docs/operations.md', '\n## Metrics\n').flatMap(([names, labels]) => {
    const [first = '', ...others] = namesIn(names)
    const stem = first.replace(/_p50_seconds$/, '')
    return [first, ...others.map((name) => name.replace('…', stem))].map((name) => [name, namesIn(labels)])
  })
  const rows = Object.values<MetricRow>(METRICS)
  expect(rows.length).toBeGreaterThan(30)
  expect(inOrder(listed)).toEqual(inOrder(rows.map(({ name, labels = [] }) => [name, [...labels]])))
})

test('docs/operations.md lists every kind of tokens that the metrics count', () => {
  const row = rowsAfter('docs/operations.md', '\n## Metrics\n').find(
    ([name]) => name === '`sluice_tokens_total`',
  )
  expect([...new Set(namesIn(row?.[2]))]).toEqual([...COUNTS])
})

test('docs/operations.md lists every type of alert with the fields of its data', () => {
  const listed = rowsAfter('docs/operations.md', '\n## Alerts\n').flatMap(([types, , data = '']) =>
    namesIn(types).map((type) => [type, namesIn(data.replace(/\(.*?\)/, ''))]),
  )
  const rows = Object.entries(ALERTS).map(([type, alert]) => [
    type,
    Object.keys({
      ...alert.data,
      ...('more' in alert && alert.more),
      ...('either' in alert && alert.either),
    }),
  ])
  expect(inOrder(listed)).toEqual(inOrder(rows))
})

test('docs/configuration.md lists every event that an alert receiver can be configured for', () => {
  const events = rowsAfter('docs/configuration.md', '\n## Alerts\n').find(([name]) => name === '`events`')
  expect(namesIn(events?.[2])).toEqual(Object.keys(ALERTS))
})

test('docs/api.md lists every path that an API key may call', () => {
  const listed = rowsAfter('docs/api.md', '\nCalls with an API key').flatMap(([method, cell = '']) => {
    const [paths = '', methods = ''] = cell.split(', where METHOD is ')
    return namesIn(paths).flatMap((path) =>
      path.includes('METHOD')
        ? namesIn(methods).map((name) => [method, path.replace('METHOD', name)])
        : [[method, path]],
    )
  })
  const routes = [...RAW_ROUTES, ...JSON_ROUTES].filter(({ access }) =>
    ['api-key', 'key', 'reading-key'].includes(access),
  )
  expect(inOrder(listed)).toEqual(inOrder(routes.map(({ method, path }) => [method, path])))
})
