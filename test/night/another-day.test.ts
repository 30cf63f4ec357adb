import { execFile } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { expect, test } from 'vitest'
import { dateClock } from '../fixtures/moved-clock.ts'
import { BASE_ENVIRONMENT } from '../fixtures/program.ts'

const ROOT = join(import.meta.dirname, '../..')
/** By then vendors have shut more models down, and certificates and tokens with a fixed end are over. */
const DAYS = 400

test(`units pass in ${DAYS} days, too`, { timeout: 1_800_000 }, async () => {
  const clock = dateClock()
  clock.move(DAYS * 86_400)
  const words = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'fast', 'src', 'packages']
  const env = { ...BASE_ENVIRONMENT, ...clock.env }
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) =>
    execFile(process.execPath, words, { cwd: ROOT, env, maxBuffer: 2 ** 28 }, (error, out, err) =>
      resolve({ code: error ? error.code : 0, output: out + err }),
    ),
  )
  expect(code, output.slice(-8_000)).toBe(0)
})
