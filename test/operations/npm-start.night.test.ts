import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import process from 'node:process'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { open } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { askStream } from '../fixtures/fixture.ts'
import { family } from './process-family.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

/** A program that takes the signal that npm forwards as a duplicate even if it is late. */
let patient: PatchedCopy
beforeAll(async () => {
  patient = await patchedProgram([
    {
      file: 'src/gateway/stop-signals.ts',
      text: 'const DUPLICATE_MS = 1_000',
      by: 'const DUPLICATE_MS = 60_000',
    },
  ])
})
afterAll(() => patient?.discard())

let program: Program | undefined
let upstream: ScriptedUpstream | undefined
afterEach(async () => {
  for (const pid of program ? family(program.pid) : []) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // The process has already ended.
    }
  }
  await discard(program)
  await upstream?.stop()
})

test.each([
  ['SIGTERM to npm alone, as from a supervisor,', 'SIGTERM', false],
  // npm forwards the signal, too, which does not count as a second signal.
  ['SIGINT to all processes at once, as from a terminal,', 'SIGINT', true],
] as const)(
  'npm start: after %s running streams end, no process is left, and the port is free',
  async (_, signal, group) => {
    upstream = await startUpstream()
    const stopping = Promise.withResolvers<void>()
    upstream.script('m', { kind: 'stream', endsAfter: stopping.promise })
    program = await runProgram({
      command: ['npm', 'start'],
      cwd: patient.root,
      group,
      config: plainConfiguration(upstream.baseUrl('m')),
    })
    await program.ready()
    const live = await open(program.url, askStream('m'), { key: 'ann' })
    await live.until(' word1')
    const pids = family(program.pid)
    expect(pids.length).toBeGreaterThan(1)
    program.kill(signal)
    await eventually(
      () => program?.out().includes(`${signal}: no new calls are accepted`) ?? false,
      'it stops',
    )
    stopping.resolve()
    const answer = await live.end()
    expect(answer.broken).toBe(false)
    expect(answer.text).toContain('data: [DONE]')
    await program.exit
    await eventually(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), 'no process is left')
    const { port } = program
    await new Promise<void>((resolve, reject) => {
      connect(port, '127.0.0.1')
        .on('connect', () => reject(new Error('somebody listens')))
        .on('error', () => resolve())
    })
    expect(databaseOf(program.folder.path).openHolds()).toEqual([])
  },
)
