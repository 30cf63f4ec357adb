import { expect, test } from 'vitest'
import { differencesOf } from './differences.ts'

test('fields that differ are shown with both values, and equal fields and those without a label are not', () => {
  const mine = { name: 'a', models: ['x', 'y'], keys: 'secret', weight: 1 }
  const theirs = { name: 'b', models: ['x'], keys: '', weight: '1' }
  expect(
    differencesOf<Record<string, unknown>>(
      { name: 'Name', models: 'Models', weight: 'Weight' },
      mine,
      theirs,
    ),
  ).toEqual([
    { label: 'Name', mine: 'a', theirs: 'b' },
    { label: 'Models', mine: 'x, y', theirs: 'x' },
  ])
})
