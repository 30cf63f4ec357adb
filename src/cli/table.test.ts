import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { type Column, table } from './table.ts'

interface Row {
  readonly name: string
  readonly count: number
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'COUNT', cell: ({ count }) => String(count), right: true, warns: ({ count }) => count < 0 },
  { title: 'END', cell: () => '.' },
]

test('a table of a command has aligned cells, numbers to the right, and no colours if the output is no terminal', () => {
  const rows = [
    { name: 'a', count: 1 },
    { name: 'Zoë 👩‍👩‍👧', count: -123_456 },
  ]
  expect(table(rows, COLUMNS, new Writable())).toBe(
    'NAME     COUNT  END\n' + // as wide as "Zoë 👩‍👩‍👧": five characters
      'a            1  .\n' +
      'Zoë 👩‍👩‍👧  -123456  .\n',
  )
})

test('a table of a command without rows is a line of titles', () => {
  expect(table([], COLUMNS, new Writable())).toBe('NAME  COUNT  END\n')
})
