import process from 'node:process'
import { hashSync, parseOptions } from '@node-rs/argon2'
import { hashSync as hashOfBcrypt } from '@node-rs/bcrypt'
import { describe, expect, test } from 'vitest'
import { Passwords } from './passwords.ts'

const passwords = new Passwords()

describe('a password', () => {
  test('a password is stored as Argon2id with 19 MiB of memory, two passes and its own salt', async () => {
    const [one, other] = await Promise.all([passwords.hash('the same', 'a'), passwords.hash('the same', 'a')])
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(other).not.toBe(one)
  })

  test('a password is compared independently of the Unicode form of its letters', async () => {
    const hash = await passwords.hash('caf\u00E9 au lait', 'a')
    expect(await passwords.verify(hash, 'cafe\u0301 au lait', 'a')).toBe(true)
    expect(await passwords.verify(hash, 'cafe au lait', 'a')).toBe(false)
  })

  test('a password for an unknown user is never right, and its check takes as long as for a known user', async () => {
    const hash = hashSync('somebody')
    const took = async (of: string | null): Promise<number> => {
      const began = performance.now()
      for (let round = 0; round < 2; round += 1)
        expect(await passwords.verify(of, 'a guess', 'a')).toBe(false)
      return performance.now() - began
    }
    await took(null)
    // Compares the fastest of alternating runs, because other load can only add time.
    let [somebody, nobody] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    const ratio = (): number => Math.max(somebody / nobody, nobody / somebody)
    for (let round = 0; round < 60 && !(round >= 5 && ratio() < 4); round += 1) {
      somebody = Math.min(somebody, await took(hash))
      nobody = Math.min(nobody, await took(null))
    }
    expect(ratio()).toBeLessThan(4)
    expect(parseOptions(hash)).toMatchObject({ memoryCost: 19_456, timeCost: 2, parallelism: 1 })
  })

  test('a wrong password is checked as long for an imported bcrypt hash as for others, if both algorithms are in use', async () => {
    const [argon2, bcrypt] = [hashSync('somebody'), hashOfBcrypt('somebody', 10)]
    expect(await passwords.verify(bcrypt, 'somebody', 'a')).toBe(true)
    const took = async (of: string | null): Promise<number> => {
      const began = process.cpuUsage()
      expect(await passwords.verify(of, 'a guess', 'a')).toBe(false)
      await passwords.spendOtherTime(of, 'a guess', 'a')
      return process.cpuUsage(began).user
    }
    // Compares the cheapest of alternating runs by CPU time, to which other processes add little.
    const cheapest = [argon2, bcrypt, null].map(() => Number.POSITIVE_INFINITY)
    const ratio = (): number => Math.max(...cheapest) / Math.min(...cheapest)
    for (let round = 0; round < 60 && !(round >= 5 && ratio() < 2); round += 1) {
      for (const [i, hash] of [argon2, bcrypt, null].entries())
        cheapest[i] = Math.min(cheapest[i] ?? 0, await took(hash))
    }
    expect(ratio()).toBeLessThan(2)
  })

  test('a password check is refused with retry-after while too many wait, and all that wait get their turn', async () => {
    const busy = new Passwords()
    const outcomes = await Promise.allSettled(Array.from({ length: 104 }, () => busy.verify(null, 'x', 'a')))
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    expect(refused.map((outcome) => (outcome as PromiseRejectedResult).reason.code)).toEqual([
      'overloaded',
      'overloaded',
    ])
    expect(await busy.verify(await busy.hash('y', 'a'), 'y', 'a')).toBe(true)
  })
})
