import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { check, isWithout } from '../fixtures/checkers.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, '.github/workflows')
const NAMES = readdirSync(FOLDER)

/** The fields of a workflow that tests read. */
interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>
  readonly jobs: Readonly<
    Record<
      string,
      { readonly permissions?: Readonly<Record<string, string>>; readonly steps?: readonly Step[] }
    >
  >
}

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}

const textOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8')
const workflow = (name: string): Workflow => parse(textOf(name)) as Workflow
const stepsOf = (name: string): Step[] =>
  Object.values(workflow(name).jobs).flatMap(({ steps = [] }) => steps)

test.skipIf(isWithout('actionlint', 'shellcheck'))('actionlint finds no mistake in a workflow', () => {
  expect(check('actionlint', ['-no-color'])).toEqual({ code: 0, output: '' })
})

/** The parts that .ci/run names, except `all`. */
const partsOfRun = (): string[] =>
  /\^\(all\|([\w|]+)\)\$/.exec(readFileSync(join(ROOT, '.ci/run'), 'utf8'))?.[1]?.split('|') ?? []

test.skipIf(isWithout('shellcheck'))('shellcheck finds no mistake in a script', () => {
  const scripts = ['.ci/run', '.ci/tools.sh', 'deploy/image/rootfs.sh']
  const args = [
    '--shell=bash',
    '--exclude=SC2016,SC1091',
    ...scripts.filter((path) => existsSync(join(ROOT, path))),
  ]
  expect(check('shellcheck', args)).toEqual({ code: 0, output: '' })
})

describe.each(NAMES)('the workflow %s', (name) => {
  test('a workflow pins each action by a full commit, with its version beside it', () => {
    const used = textOf(name).match(/uses: .*/g) ?? []
    const own = used.filter((line) => !line.startsWith('uses: ./'))
    for (const line of own) expect(line).toMatch(/^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
    expect(textOf(name)).not.toMatch(/curl|wget/)
  })

  test('a workflow may only read unless a job states what it writes, and no checkout leaves its token behind', () => {
    expect(workflow(name).permissions).toEqual({ contents: 'read' })
    const checkouts = stepsOf(name).filter(({ uses }) => uses?.startsWith('actions/checkout@'))
    for (const step of checkouts) expect(step.with?.['persist-credentials']).toBe(false)
  })
})

test('a pull request is checked by every part of .ci/run, and a release is published only after that check', () => {
  expect(stepsOf('ci.yml').map(({ run }) => run)).toContain('bash .ci/run ${{ matrix.part }}')
  const matrix = /part: \[(.*)\]/.exec(textOf('ci.yml'))?.[1]?.split(', ') ?? []
  const shards = matrix.filter((part) => part.startsWith('system '))
  expect(shards).toEqual(shards.map((_, at) => `system ${at + 1}/${shards.length}`))
  expect(matrix.filter((part) => !shards.includes(part))).toEqual(
    partsOfRun().filter((part) => part !== 'system' && part !== 'night'),
  )
  const { jobs } = parse(textOf('release.yml')) as {
    jobs: Record<string, { needs?: string | string[]; uses?: string }>
  }
  expect(jobs['check']?.uses).toBe('./.github/workflows/ci.yml')
  for (const name of ['package', 'image']) expect(jobs[name]?.needs).toBe('check')
})

test('every part of the night runs each night', () => {
  const { on, jobs } = parse(textOf('night.yml')) as {
    on: { schedule: { cron: string }[] }
    jobs: Record<string, { strategy: { matrix: { part: string[] } } }>
  }
  expect(on.schedule.map(({ cron }) => cron)).toEqual([expect.stringMatching(/^\d+ \d+ \* \* \*$/)])
  expect(stepsOf('night.yml').map(({ run }) => run)).toContain('bash .ci/run night ${{ matrix.part }}')
  const parts = jobs['night']?.strategy.matrix.part ?? []
  expect(parts.length).toBeGreaterThan(0)
  expect(parts).toEqual(parts.map((_, at) => `${at + 1}/${parts.length}`))
})

test('a release needs no stored password: npm trusts the workflow, and cosign signs with its identity', () => {
  const text = textOf('release.yml')
  expect([...text.matchAll(/secrets\.(\w+)/g)].map(([, secret]) => secret)).toEqual([
    'GITHUB_TOKEN',
    'GITHUB_TOKEN',
  ])
  expect(text).toContain('npm publish --provenance --access public')
  for (const name of ['package', 'image', 'chart'])
    expect(workflow('release.yml').jobs[name]?.permissions?.['id-token'], name).toBe('write')
  const build = stepsOf('release.yml').find(({ uses }) => uses?.startsWith('docker/build-push-action@'))
  expect(build?.with).toMatchObject({
    platforms: 'linux/amd64,linux/arm64',
    sbom: true,
    provenance: 'mode=max',
  })
  expect(text.match(/cosign sign --yes/g)).toHaveLength(2)
})
