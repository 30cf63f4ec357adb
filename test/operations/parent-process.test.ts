import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { OLD_NODE } from '../fixtures/old-node.ts'
import { isAlive } from '../fixtures/process-state.ts'
import { family } from './process-family.ts'
import { readyProgram } from './program.ts'

const BIN = join(import.meta.dirname, '..', '..', 'bin', 'sluice.mjs')

/** A folder for PATH with a `node` that fails. */
function failingNode(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-failing-node-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'node')
  writeFileSync(file, '#!/bin/sh\nexit 9\n')
  chmodSync(file, 0o755)
  return folder
}

const WAYS: readonly (readonly [name: string, command: readonly string[], first: () => string])[] = [
  ['a node that fails', [process.execPath, BIN, 'start'], failingNode],
  ...(OLD_NODE === undefined
    ? []
    : [['an older Node', [BIN, 'start'], () => dirname(OLD_NODE ?? '')] as const]),
]

test.each(WAYS)(
  "with %s first in PATH, kill -9 of the process that was started also ends the gateway's other processes",
  async (_, command, first) => {
    const { pid, exit } = await readyProgram({
      command,
      config: {},
      env: { PATH: [first(), process.env['PATH']].join(delimiter) },
    })
    const others = family(pid).slice(1)
    onTestFinished(() => {
      for (const other of others) if (isAlive(other)) process.kill(other, 'SIGKILL')
    })
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => others.filter(isAlive)).toEqual([])
    await exit
  },
)
