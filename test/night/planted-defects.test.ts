import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { patchedTexts } from '../fixtures/patch.ts'
import { type PatchedCopy, patchedSources } from '../fixtures/patched-copy.ts'
import { BASE_ENVIRONMENT } from '../fixtures/program.ts'
import { PLANTED_DEFECTS } from './defects/planted.ts'

/** What the tests of the day read, beside sources and packages. */
const OTHERS = ['test', 'docs', 'tools', 'bin', 'package-lock.json', 'tsconfig.json', 'vitest.config.ts']

let copy: PatchedCopy
beforeAll(() => {
  copy = patchedSources([], OTHERS)
})
afterAll(() => copy?.discard())

/** The results of a run, as the reporter `json` of Vitest writes them. */
interface Results {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly status: string; readonly title: string }[]
  }[]
}

/**
 * Runs tests of the day in the copy; returns the titles of those that fail and of those that pass. A file that cannot be
 * loaded or set up says nothing about a defect: it is an error.
 */
async function runTests(files: readonly string[], titles: readonly string[]) {
  const output = join(copy.root, 'results.json')
  rmSync(output, { force: true })
  const vitest = join(copy.root, 'node_modules/vitest/vitest.mjs')
  const options = ['run', '--reporter=json', `--outputFile=${output}`, '--maxWorkers=2']
  const pattern = titles.map((title) => title.replaceAll(/[^\w ]/g, '.')).join('|')
  const env = { ...BASE_ENVIRONMENT, CI: 'true', TEST_DATABASE_URL: process.env['TEST_DATABASE_URL'] }
  const printed = await new Promise<string>((resolve) =>
    execFile(
      process.execPath,
      [vitest, ...options, '-t', pattern, ...files],
      { cwd: copy.root, env },
      (_, out, errors) => resolve(out + errors),
    ),
  )
  if (!existsSync(output)) throw new Error(`the tests did not run: ${printed}`)
  const { testResults } = JSON.parse(readFileSync(output, 'utf8')) as Results
  const failed: string[] = []
  const passed: string[] = []
  for (const { name, status, message, assertionResults } of testResults) {
    const before = failed.length
    for (const { status: result, title } of assertionResults)
      if (result === 'failed') failed.push(title)
      else if (result === 'passed') passed.push(title)
    if (status === 'failed' && failed.length === before) throw new Error(`${name}: ${message}`)
  }
  return { failed, passed }
}

test('the tests of the day pass in a copy without a defect', async () => {
  const files = PLANTED_DEFECTS.map(([, , file]) => file)
  const titles = PLANTED_DEFECTS.map(([, , , title]) => title)
  const { failed, passed } = await runTests([...new Set(files)], titles)
  expect(failed).toEqual([])
  expect(titles.filter((title) => !passed.some((one) => one.includes(title)))).toEqual([])
})

test.each(PLANTED_DEFECTS)('a test of the day fails if %s', async (_, patch, file, title) => {
  const place = join(copy.root, patch.file)
  const before = readFileSync(place)
  for (const [, text] of patchedTexts([patch])) writeFileSync(place, text)
  try {
    const { failed } = await runTests([file], [title])
    console.info(`${failed.length} red: ${file}: ${failed[0]}`)
    expect(failed).not.toEqual([])
  } finally {
    writeFileSync(place, before)
  }
})
