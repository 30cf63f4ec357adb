import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** The time of day of a process that is started with `env`; its timers are not affected. */
export interface MovedClock {
  readonly env: Readonly<Record<string, string>>
  /** Sets the offset of the time of day, in seconds. */
  move(seconds: number): void
}

type OnEnd = (cleanUp: () => void) => void

const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
const PRELOAD = fileURLToPath(new URL('clock-preload.ts', import.meta.url))

/** Whether the system's clock can be changed for a process: libfaketime must be installed. */
export const HAS_FAKETIME = existsSync(LIBRARY)

/** A clock that is moved below the program: the C library returns a wrong time. */
export function systemClock(): MovedClock {
  return clockOf((file) => ({
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    FAKETIME_NO_CACHE: '1',
  }))
}

/** A clock that is moved within the program: `Date` returns a wrong time. This needs no installation. */
export function dateClock(onEnd: OnEnd = onTestFinished): MovedClock {
  return clockOf((file) => ({ NODE_OPTIONS: `--import ${PRELOAD}`, CLOCK_FILE: file }), onEnd)
}

function clockOf(envOf: (file: string) => Record<string, string>, onEnd: OnEnd = onTestFinished): MovedClock {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-clock-'))
  onEnd(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'offset')
  const move = (seconds: number): void => {
    // Replaced atomically, so that no reader sees half a number.
    writeFileSync(`${file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`)
    renameSync(`${file}.new`, file)
  }
  move(0)
  return { env: envOf(file), move }
}
