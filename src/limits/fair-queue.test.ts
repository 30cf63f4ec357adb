import { describe, expect, test } from 'vitest'
import { FairQueue } from './fair-queue.ts'

const refusal = (): Error => new Error('too many')

/**
 * Queue of work that is named after its flow and ends on request, oldest first; records the order of starts.
 */
function stage(concurrency: number, maxWaiting: number) {
  const queue = new FairQueue(concurrency, maxWaiting)
  const started: string[] = []
  const ends: (() => void)[] = []
  const refused: string[] = []
  return {
    started,
    refused,
    submit: (flow: string, pieces = 1): void => {
      for (let piece = 0; piece < pieces; piece += 1) {
        const work = async (): Promise<void> => {
          started.push(flow)
          await new Promise<void>((resolve) => ends.push(resolve))
        }
        queue.run(flow, refusal, work).catch(() => refused.push(flow))
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

describe('a fair queue', () => {
  test('a fair queue starts as many tasks at once as may run, and the other tasks of a flow in order of arrival', async () => {
    const { started, submit, end } = stage(2, 10)
    submit('a', 3)
    submit('b')
    expect(started).toEqual(['a', 'a'])
    await end(4)
    expect(started).toEqual(['a', 'a', 'b', 'a'])
  })

  test('a fair queue starts the work of a flow that comes late before further work of a flow with much waiting work', async () => {
    const { started, submit, end } = stage(2, 200)
    submit('many', 120)
    await end(10)
    submit('late')
    await end(1)
    expect(started.slice(12)).toEqual(['late'])
    await end(1)
    submit('late')
    submit('other')
    await end(2)
    expect(started.slice(14).toSorted()).toEqual(['late', 'other'])
  })

  test('a fair queue alternates between flows, so that each flow starts equally much work', async () => {
    const { started, submit, end } = stage(1, 200)
    submit('a', 50)
    submit('b', 10)
    submit('c', 5)
    await end(11)
    const counts = ['a', 'b', 'c'].map((flow) => started.filter((one) => one === flow).length)
    expect(counts).toEqual([4, 4, 4])
  })

  test('a fair queue gives a flow that was idle or has returned no advantage over other flows', async () => {
    const { started, submit, end } = stage(1, 200)
    submit('a', 30)
    await end(20)
    submit('b', 10)
    await end(10)
    expect(started.slice(21).filter((one) => one === 'b').length).toBeLessThanOrEqual(6)
    expect(started.slice(21).filter((one) => one === 'a').length).toBeGreaterThanOrEqual(4)
  })

  test('a full fair queue refuses work of the flow with the most waiting work, not of a flow that comes late', async () => {
    const { started, refused, submit, end } = stage(2, 10)
    submit('many', 14)
    await settled()
    expect(refused).toEqual(['many', 'many'])
    submit('late', 3)
    await settled()
    expect(refused).toEqual(['many', 'many', 'many', 'many', 'many'])
    await end(20)
    expect(started.filter((one) => one === 'late')).toHaveLength(3)
  })

  test('a fair queue starts its next task after a task that fails', async () => {
    const queue = new FairQueue(1, 10)
    const fails = queue.run('a', refusal, () => Promise.reject(new Error('broken')))
    const next = queue.run('a', refusal, () => Promise.resolve('done'))
    await expect(fails).rejects.toThrow('broken')
    expect(await next).toBe('done')
    expect(await queue.run('a', refusal, () => Promise.resolve('again'))).toBe('again')
  })
})
