import { describe, expect, test } from 'vitest'
import { SETTLED_CALL } from '../../../test/ledger/settled-call.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { LiveSource, liveQueryKey, RowJsonCache } from './live-source.ts'

const NAMES = new Map([[3, { username: 'ann', token_name: 'one' }]])
const many = (count: number): SettledCall[] =>
  Array.from({ length: count }, (_, n) => ({ ...SETTLED_CALL, id: String(n + 1) }))

/** The ids of the calls that one turn shows, how many it misses, and the ids whose names were requested. */
function shown(
  source: LiveSource,
  calls: readonly SettledCall[],
  { names = NAMES, hasLost = false, room = 20 } = {},
) {
  const asked = source.begin(calls, hasLost, room).map(({ id }) => id)
  const turn = source.end(new RowJsonCache(names))
  return { asked, ids: turn.calls.map(({ id }) => id), missed: turn.missed }
}
const sourceOf = (filter: UsageFilter = {}): LiveSource => new LiveSource({ scope: 'all', filter })

describe('a source of live calls', () => {
  test.each([
    ['user_id', 2, 9],
    ['username', 'ann', 'ada'],
    ['token_name', 'one', 'two'],
    ['model', 'm', 'n'],
    ['channel', 'c', 'd'],
    ['group', 'default', 'vip'],
    ['id', '1', '2'],
    ['fromMs', 1000, 1001],
    ['beforeMs', 1001, 1000],
    ['reasons', ['complete', 'cut'], ['cut']],
  ])('a live source shows only the calls of its filter by %s', (field, wanted, other) => {
    expect(shown(sourceOf({ [field]: wanted }), many(1))).toMatchObject({ ids: ['1'], missed: 0 })
    expect(shown(sourceOf({ [field]: other }), many(1))).toMatchObject({ ids: [], missed: 0 })
  })

  test('a live source shows at most as many calls as there is room for, and counts the other calls as missed', () => {
    const rest = shown(sourceOf(), many(500), { room: 5 })
    expect([rest.ids.length, rest.missed]).toEqual([5, 495])
    expect(shown(sourceOf(), many(25))).toMatchObject({ ids: { length: 20 }, missed: 5 })
  })

  test('a live source looks up user and key names only for the calls that it shows', () => {
    const source = sourceOf()
    expect(shown(source, many(500)).asked).toHaveLength(20)
    expect(shown(source, many(500), { room: 0 }).asked).toEqual([])
    expect(shown(sourceOf({ model: 'n', username: 'ann' }), many(500)).asked).toEqual([])
  })

  test('a live source with a filter by user name shows and counts only calls of that user', () => {
    const calls = many(60).map((one, n) => ({ ...one, token_id: n % 2 === 0 ? 3 : 4 }))
    const names = new Map([...NAMES, [4, { username: 'ben', token_name: 'one' }]])
    const { ids, missed } = shown(sourceOf({ username: 'ben' }), calls, { names })
    expect([ids.length, missed]).toEqual([20, 10])
    expect(ids).not.toContain('1')
  })

  test('a live source reports an unknown number of missed calls if calls were lost, or if their user and key names are not found', () => {
    expect(shown(sourceOf(), many(1), { hasLost: true })).toMatchObject({ ids: ['1'], missed: null })
    expect(shown(sourceOf(), many(1), { names: new Map() })).toMatchObject({ ids: [], missed: null })
  })
})

describe('the row of a live call', () => {
  test("the JSON of a live call's row is made once for all readers that may see the same fields of it", () => {
    const rows = new RowJsonCache(NAMES)
    let written = 0
    const counted = {
      ...SETTLED_CALL,
      get model() {
        written += 1
        return 'm'
      },
    }
    const sources = ['default', undefined].map((group) => new LiveSource({ scope: 'own', filter: { group } }))
    for (const source of sources) source.begin([counted], false, 20)
    const [first, second] = sources.map((source) => source.end(rows).calls[0]?.text)
    expect([first, written]).toEqual([second, 1])
  })

  test('the row of a live call has the channel only for administrators', () => {
    const texts = (['all', 'own'] as const).map((scope) => {
      const source = new LiveSource({ scope, filter: {} })
      source.begin([SETTLED_CALL], false, 20)
      return source.end(new RowJsonCache(NAMES)).calls[0]?.text
    })
    expect(texts).toEqual([
      expect.stringContaining('"channel":"c"'),
      expect.not.stringContaining('"channel"'),
    ])
  })
})

test('two live subscriptions share a name only if their scope and filter are equal', () => {
  expect(liveQueryKey({ scope: 'all', filter: { model: undefined } })).toBe(
    liveQueryKey({ scope: 'all', filter: {} }),
  )
  const names = [
    liveQueryKey({ scope: 'all', filter: {} }),
    liveQueryKey({ scope: 'own', filter: {} }),
    liveQueryKey({ scope: 'own', filter: { user_id: 1 } }),
    liveQueryKey({ scope: 'own', filter: { user_id: 2 } }),
  ]
  expect(new Set(names).size).toBe(names.length)
})
