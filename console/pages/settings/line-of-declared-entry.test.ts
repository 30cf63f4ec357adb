import { expect, test } from 'vitest'
import { lineOfDeclaredEntry } from './line-of-declared-entry.ts'

const FILE = {
  file: 'gateway.yaml',
  items: [
    { path: 'models.m.price.input', line: 3, value: 1 },
    { path: 'models.m.fallback', line: 5, value: ['n'] },
    { path: 'models["gpt-4.1"].vendor', line: 7, value: 'openai' },
    { path: 'models.mm.vendor', line: 9, value: 'x' },
  ],
}

test.each([
  ['m', 'fallback', 5],
  ['m', 'balance', 3],
  ['gpt-4.1', 'fallback', 7],
  ['other', 'fallback', undefined],
])('the line of the file that declares %s.%s', (name, field, line) => {
  expect(lineOfDeclaredEntry(FILE, 'models', name, field)).toBe(line)
})
