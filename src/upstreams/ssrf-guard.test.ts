import { setImmediate, setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { inTurn, isPublicAddress } from './ssrf-guard.ts'

test.each([
  ['8.8.8.8', true],
  ['2a00:1450:4001:82f::200e', true],
  ['2a00:1450::5efe:8.8.8.8', true],
  ['10.0.0.1', false],
  ['2a00:1450::5efe:10.0.0.1', false],
  ['2a00:1450::200:5efe:169.254.169.254', false],
  ['2001:0:a00:1::1', false],
  ['64:ff9b::10.0.0.1', false],
  ['2002:a00:1::', false],
])('an address is public only if the address that it embeds is public too: %s', (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic)
})

describe('names that are resolved in turn', () => {
  const ADDRESSES = [{ address: '10.0.0.1', family: 4 }]
  const begin = (timeoutMs: number) => {
    const asked: string[] = []
    const answer = Promise.withResolvers<typeof ADDRESSES>()
    const find = inTurn(timeoutMs, (name) => {
      asked.push(name)
      return answer.promise
    })
    return { asked, answer: () => answer.resolve(ADDRESSES), find }
  }

  test('one name is asked for at a time, and the next one once the first has an answer', async () => {
    const { asked, answer, find } = begin(60_000)
    const found = [find('a.test'), find('b.test')]
    await setImmediate()
    expect(asked).toEqual(['a.test'])
    answer()
    expect(await Promise.all(found)).toEqual([ADDRESSES, ADDRESSES])
    expect(asked).toEqual(['a.test', 'b.test'])
  })

  test('a name whose turn comes too late is not asked for', async () => {
    const { asked, answer, find } = begin(1)
    const found = [find('a.test'), find('b.test')]
    const results = Promise.allSettled(found)
    await setTimeout(5)
    answer()
    expect((await results).map(({ status }) => status)).toContain('rejected')
    expect(asked).not.toContain('b.test')
  })
})
