import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { audit, type Observation } from '../fixtures/auditor.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { open } from '../fixtures/client.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'
import { newFolder, type Program, runProgram } from '../operations/program.ts'

const QUOTA = 1_000_000_000
const CLIENTS = 20
const ROUNDS = 5
/** The number of calls that are complete before the disk breaks. */
const CALLS_OF_ROUND = 20
/**
 * Maximum milliseconds from the first disk error to the end of the process. An idle machine needs less than a
 * tenth of that, although the tracer stops the process at each system call.
 */
const ENDS_WITHIN_MS = 1000

/** Whether system calls of another process can be made to fail here. */
const CAN_FAIL = spawnSync('strace', ['-qq', '-e', 'trace=none', process.execPath, '-e', '0']).status === 0
if (!CAN_FAIL)
  console.log('left out: no disk error can be made here (strace is not installed, or may not trace)')

/** Makes every fsync of the process fail with an I/O error from now on. */
async function breakDisk(
  pid: number,
): Promise<{ readonly watcher: ChildProcess; firstErrorMs: () => number }> {
  const calls = 'fsync,fdatasync'
  const watcher = spawn(
    'strace',
    [
      '-f',
      '-qq',
      '-e',
      `trace=${calls}`,
      '-e',
      `inject=${calls}:error=EIO`,
      '-e',
      'signal=none',
      '-p',
      String(pid),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let firstMs = Number.NaN
  watcher.stderr.on('data', (text: Buffer) => {
    if (Number.isNaN(firstMs) && text.includes('INJECTED')) firstMs = performance.now()
  })
  await sleep(0)
  return { watcher, firstErrorMs: () => firstMs }
}

test.runIf(CAN_FAIL || process.env['CI'] === 'true')(
  'a disk that fails to sync ends the program at once, and the next start has every charge',
  { timeout: 300_000 },
  async () => {
    const upstream = await startUpstream()
    upstream.decide('m', ({ text }) => ({
      kind: (JSON.parse(text) as { stream: boolean }).stream ? 'stream' : 'whole',
      usage: usageText(10, 5),
      paceMs: 2,
    }))
    const folder = newFolder()
    const config = {
      ...plainConfiguration(upstream.baseUrl('m')),
      users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
    }
    const granted = { tokens: new Map([['token-ann', QUOTA]]), users: new Map([['ann', QUOTA]]) }
    const observations: Observation[] = []
    const completeCalls = (): number => observations.filter(({ complete }) => complete).length
    let program: Program | undefined
    try {
      for (let round = 0; round < ROUNDS; round++) {
        program = await runProgram({ folder, config })
        await program.ready()
        const { url, pid, exit } = program
        const end = { isHere: false }
        const clients = Array.from({ length: CLIENTS }, async (_, index) => {
          while (!end.isHere) observations.push(await oneCall(url, index % 2 === 0))
        })
        const before = completeCalls()
        await expect.poll(completeCalls).toBeGreaterThan(before + CALLS_OF_ROUND)
        const { watcher, firstErrorMs } = await breakDisk(pid)
        const { code, at } = await exit
        end.isHere = true
        await Promise.all(clients)
        watcher.kill('SIGKILL')
        console.log(
          `round ${round + 1}: it ended ${(at - firstErrorMs()).toFixed(0)} ms after the first error`,
        )
        expect(code).toBe(1)
        expect(program.err()).toMatch(
          /sluice stops: .*could not be read or written.*settled at the next start/,
        )
        expect(at - firstErrorMs()).toBeLessThan(ENDS_WITHIN_MS)
        program = await runProgram({ folder })
        await program.ready()
        expect(audit(folder.path, observations, granted)).toEqual([])
        program.kill('SIGTERM')
        await program.exit
      }
      console.log(`${observations.length} calls, ${completeCalls()} complete, nothing lost or charged twice`)
    } finally {
      program?.kill('SIGKILL')
      await program?.exit
      folder.discard()
      await upstream.stop()
    }
  },
)

let calls = 0
async function oneCall(url: string, stream: boolean): Promise<Observation> {
  const quota = 10 + 4 * 5
  const call = `call${calls++}`
  try {
    const answer = await (await open(url, ask('m', { stream }), { key: 'ann' })).end()
    const complete = answer.status === 200 && (stream ? answer.text.includes('data: [DONE]') : !answer.broken)
    return {
      call,
      id: String(answer.headers['x-request-id']),
      status: answer.status,
      sawContent: answer.status === 200 && /"content":"[^"]/.test(answer.text),
      complete,
      quota: complete ? quota : 100_000,
      seenCost: 0,
    }
  } catch {
    await sleep(20)
    return { call, id: undefined, status: 0, sawContent: false, complete: false, quota, seenCost: 0 }
  }
}
