import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { requestMemory, usedUp } from '../../test/request-memory.ts'
import { ResponseMemory } from './answer-memory.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** Bytes of a response that are not counted. */
const FREE = 64 * KIB

function answers(count: number) {
  const memory = requestMemory()
  const owner = { client: 1, key: 1 }
  return {
    memory,
    all: Array.from({ length: count }, () => new ResponseMemory(memory, owner)) as [ResponseMemory],
  }
}

async function isSettled(waiting: Promise<unknown>): Promise<boolean> {
  let settled = false
  void waiting.then(() => (settled = true))
  await nextTurn()
  return settled
}

describe("the memory of an upstream's response", () => {
  test('the memory of a response above 64 KiB is counted for its user', () => {
    const { memory, all } = answers(1)
    const [answer] = all
    answer.resize(FREE)
    expect(memory.held).toBe(0)
    answer.resize(FREE + MIB)
    expect([memory.heldBy(1), answer.isShort]).toEqual([MIB, false])
    answer.resize(FREE + 10)
    expect(memory.heldBy(1)).toBe(10)
    answer.resize(0)
    expect(memory.held).toBe(0)
  })

  test("the memory of one response at a time may exceed its user's share, so that responses do not wait for each other forever", async () => {
    const { memory, all } = answers(3)
    const giveBack = usedUp(memory)
    for (const answer of all) answer.resize(FREE + MIB)
    expect(all.map(({ isShort }) => isShort)).toEqual([true, true, true])
    const waits = all.map((answer) => answer.whenEnough())
    const settled = (): Promise<boolean[]> => Promise.all(waits.map(isSettled))
    expect(await settled()).toEqual([true, false, false])
    all[0].resize(FREE + 2 * MIB)
    await all[0].whenEnough()
    expect(all[0].isShort).toBe(false)
    all[0].resize(0)
    expect(await settled()).toEqual([true, true, false])
    giveBack()
    expect(await settled()).toEqual([true, true, true])
    for (const answer of all) answer.resize(0)
    expect(memory.held).toBe(0)
  })

  test('the memory of a response is neither waited for nor taken when nothing is held', async () => {
    const { memory, all } = answers(2)
    const giveBack = usedUp(memory)
    for (const answer of all) answer.resize(FREE + MIB)
    const waits = all.map((answer) => answer.whenEnough())
    for (const answer of all) answer.resize(0)
    await Promise.all(waits)
    giveBack()
    expect(memory.held).toBe(0)
  })

  test('the memory of a response is released where less is held than was waited for', async () => {
    const { memory, all } = answers(2)
    const giveBack = usedUp(memory)
    for (const answer of all) answer.resize(FREE + MIB)
    const waits = all.map((answer) => answer.whenEnough())
    all.at(-1)?.resize(FREE + 10)
    giveBack()
    await Promise.all(waits)
    expect(memory.held).toBe(MIB + 10)
  })
})
