import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../fixtures/port.ts'
import { discard, eventually, newFolder, type Program, type ProgramOptions, runProgram } from './program.ts'

async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('the server has no port')
  return address.port
}

/** The options of a program that refuses to start, and what it says. */
const CASES: readonly (readonly [string, RegExp, () => Promise<ProgramOptions>])[] = [
  [
    'a port that is in use',
    /port \d+ of 127\.0\.0\.1 is taken/,
    async () => ({ config: {}, port: await takenPort() }),
  ],
  [
    'an address of another machine',
    /203\.0\.113\.9 is not an address of this machine/,
    async () => ({ config: {}, port: await freePort(), env: { HOST: '203.0.113.9' } }),
  ],
  ['a mistake in gateway.yaml', /expected/, async () => ({ config: 'options: { retries: many }\n' })],
  [
    'a database that cannot be opened',
    /sluice cannot start: /,
    async () => ({ config: {}, env: { DATABASE_URL: 'sqlite:/dev/null/sluice.db' } }),
  ],
]

test.each(CASES)('a start with %s ends with code 1 as soon as it has said so', async (_, said, options) => {
  const codes = new Set<number | null>()
  /** Makes such a start. Returns the time of its end as a multiple of the time until then. */
  const timeOfEnd = async (): Promise<number> => {
    const begun = performance.now()
    const program: Program = await runProgram({
      folder: newFolder(),
      ownProcess: true,
      ...(await options()),
    })
    onTestFinished(() => discard(program))
    await eventually(() => said.test(program.err()), 'the reason')
    const saidAt = performance.now()
    const { code, at } = await program.exit
    codes.add(code)
    return (at - saidAt) / (saidAt - begun)
  }
  // A thread or a timer that keeps the process alive does so for a minute at each start, which no start takes;
  // a busy machine delays the end of one of them.
  await expect.poll(timeOfEnd).toBeLessThan(2)
  expect(codes).toEqual(new Set([1]))
})
