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

test('the console shows chosen values in the words of the form, and not as they are sent', () => {
  const mine = { expiry: 'week', period: 'month', places: ['input', 'output'], open: true, ratio: '2' }
  const theirs = { expiry: '9', period: '', places: ['constructor'], open: false, ratio: '3' }
  const words = {
    expiry: (expiry: string) => (expiry === 'week' ? 'In 7 days' : `at ${expiry}`),
    period: { '': 'None', month: 'Month' },
    places: { input: 'Input', output: 'Output' },
    open: { true: 'Yes', false: 'No' },
  }
  const labels = { expiry: 'Expires', period: 'Period', places: 'Where', open: 'Open', ratio: 'Ratio' }
  expect(differencesOf(labels, mine, theirs, undefined, words)).toEqual([
    { label: 'Expires', mine: 'In 7 days', theirs: 'at 9' },
    { label: 'Period', mine: 'Month', theirs: 'None' },
    { label: 'Where', mine: 'Input, Output', theirs: 'constructor' },
    { label: 'Open', mine: 'Yes', theirs: 'No' },
    { label: 'Ratio', mine: '2', theirs: '3' },
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
