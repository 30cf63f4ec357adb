import { writeSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { patchedTexts } from '../fixtures/patch.ts'
import type { FuzzJob, FuzzReport } from './fuzz-job.ts'
import type { FatalReport } from './watchdog.ts'

/** Node's exit code when a top-level await never settles. */
const UNSETTLED_AWAIT = 13
const REPOSITORY = pathToFileURL(join(import.meta.dirname, '../../')).href

const jobs = JSON.parse(process.argv[2] as string) as readonly FuzzJob[]
const patches = jobs.flatMap((job) => job.patches ?? [])

// The other files are unchanged, and loaded from the cache of compiled code.
if (patches.length > 0) {
  const patched = patchedTexts(patches)
  registerHooks({
    load(url, context, next) {
      const source = patched.get(url.slice(REPOSITORY.length))
      return source === undefined
        ? next(url, context)
        : { format: 'module-typescript', source, shortCircuit: true }
    },
  })
}

const { Coverage, NO_COVERAGE } = await import('./coverage.ts')
const { fuzz } = await import('./fuzzer.ts')
const { writeCorpus: keepInputs, readCorpus: keptInputs } = await import('./corpus-files.ts')
const { minimizedCorpus: smallestCover } = await import('./minimize-corpus.ts')
const { watchInputs } = await import('./watchdog.ts')
const { TARGETS } = await import('./targets.ts')
const { FIXTURES } = await import('./fixtures.ts')

const covered = [`${REPOSITORY}src/`, `${REPOSITORY}packages/`, new URL('fixtures.ts', import.meta.url).href]
const watchdog = watchInputs(65_536, jobs.find(({ bounds }) => bounds)?.bounds)
let last: Buffer = Buffer.alloc(0)
// An exit with an unsettled await means that the target never finished the last input.
process.on('exit', (code) => {
  const report: FatalReport = { failure: { input: last.toString('base64'), error: 'it is never answered' } }
  if (code === UNSETTLED_AWAIT) writeSync(1, `${JSON.stringify(report)}\n`)
})
for (const job of jobs) writeSync(1, `${JSON.stringify(await run(job))}\n`)
await watchdog.stop()
process.exit(0)

async function run(job: FuzzJob): Promise<FuzzReport> {
  const target = (await TARGETS[job.target]?.()) ?? FIXTURES[job.target]
  if (!target) throw new Error(`there is no target ${job.target}`)
  const { seed, isGuided = true, ms = Number.POSITIVE_INFINITY, inputs = Number.POSITIVE_INFINITY } = job
  const coverage = isGuided ? new Coverage(covered) : NO_COVERAGE
  const began = performance.now()
  const outcome = await fuzz({
    target,
    coverage,
    corpus: keptInputs(job.target),
    seed,
    isGuided,
    shouldContinue: (made) => made < inputs && performance.now() - began < ms,
    onRun(input) {
      last = input
      watchdog.onRun(input)
    },
  })
  const { characters } = coverage
  if (job.keep && !outcome.failure)
    keepInputs(job.target, await smallestCover(target, outcome.corpus, covered))
  const { failure } = outcome
  return {
    inputs: outcome.inputs,
    kept: outcome.corpus.length,
    characters,
    peakMib: Math.round(process.resourceUsage().maxRSS / 1024),
    failure: failure && { input: failure.input.toString('base64'), error: errorText(failure.error) },
  }
}

function errorText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
