import { describe, expect, test } from 'vitest'
import { FairQueue } from './fair-queue.ts'

const refusal = (): Error => new Error('too many')

/**
 * Work by the name of whose it is, that ends when it is told to, the oldest first; and the order in which it
 * began.
 */
function stage(atOnce: number, mostWaiting: number) {
  const turns = new FairQueue(atOnce, mostWaiting)
  const began: string[] = []
  const ends: (() => void)[] = []
  const refused: string[] = []
  return {
    began,
    refused,
    bring: (whose: string, pieces = 1): void => {
      for (let piece = 0; piece < pieces; piece += 1) {
        const work = async (): Promise<void> => {
          began.push(whose)
          await new Promise<void>((resolve) => ends.push(resolve))
        }
        turns.run(whose, refusal, work).catch(() => refused.push(whose))
      }
    },
    end: async (pieces = 1): Promise<void> => {
      for (let piece = 0; piece < pieces; piece += 1) {
        await settled()
        ends.shift()?.()
      }
      await settled()
    },
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('turns', () => {
  test('begin at once, as many as may run at one time, and the others in the order that they came', async () => {
    const { began, bring, end } = stage(2, 10)
    bring('a', 3)
    bring('b')
    expect(began).toEqual(['a', 'a'])
    await end(4)
    expect(began).toEqual(['a', 'a', 'b', 'a'])
  })

  test('go to who comes late before the second piece of who has many', async () => {
    const { began, bring, end } = stage(2, 200)
    bring('many', 120)
    await end(10)
    bring('late')
    await end(1)
    expect(began.slice(12)).toEqual(['late'])
    await end(1)
    bring('late')
    bring('other')
    await end(2)
    expect(began.slice(14).toSorted()).toEqual(['late', 'other'])
  })

  test('go round those who have many, so that each gets as much', async () => {
    const { began, bring, end } = stage(1, 200)
    bring('a', 50)
    bring('b', 10)
    bring('c', 5)
    await end(11)
    const counts = ['a', 'b', 'c'].map((whose) => began.filter((one) => one === whose).length)
    expect(counts).toEqual([4, 4, 4])
  })

  test('nobody saves up turns by staying away, or by coming again and again', async () => {
    const { began, bring, end } = stage(1, 200)
    bring('a', 30)
    await end(20)
    bring('b', 10)
    await end(10)
    expect(began.slice(21).filter((one) => one === 'b').length).toBeLessThanOrEqual(6)
    expect(began.slice(21).filter((one) => one === 'a').length).toBeGreaterThanOrEqual(4)
  })

  test('are refused to who brought the most where too many wait, not to who comes late', async () => {
    const { began, refused, bring, end } = stage(2, 10)
    bring('many', 14)
    await settled()
    expect(refused).toEqual(['many', 'many'])
    bring('late', 3)
    await settled()
    expect(refused).toEqual(['many', 'many', 'many', 'many', 'many'])
    await end(20)
    expect(began.filter((one) => one === 'late')).toHaveLength(3)
  })

  test('are given on by work that fails', async () => {
    const turns = new FairQueue(1, 10)
    const fails = turns.run('a', refusal, () => Promise.reject(new Error('broken')))
    const next = turns.run('a', refusal, () => Promise.resolve('done'))
    await expect(fails).rejects.toThrow('broken')
    expect(await next).toBe('done')
    expect(await turns.run('a', refusal, () => Promise.resolve('again'))).toBe('again')
  })
})
