import { expect, test } from 'vitest'
import { differencesOf, mergeEdits } from './differences.ts'

test('where two edits of one record collide, the console shows the labelled fields that differ, with both values', () => {
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

test('two edits of one record are merged, and only fields that both edits set to different values collide', () => {
  const base = { name: 'a', models: ['x'], weight: 1, note: 'old' }
  const mine = { name: 'b', models: ['x'], weight: 4, note: 'new' }
  const theirs = { name: 'c', models: ['x', 'y'], weight: 1, note: 'new' }
  expect(mergeEdits({ base, mine, theirs })).toEqual({
    merged: { name: 'b', models: ['x', 'y'], weight: 4, note: 'new' },
    collisions: ['name'],
  })
})
