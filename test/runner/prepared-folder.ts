import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Patch } from '../fixtures/patch.ts'
import { patchedSources } from '../fixtures/patched-copy.ts'
import { PATIENT_PROGRAMS } from '../fixtures/patient-program.ts'
import { writeProgram } from '../fixtures/program-bundle.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const GATEWAY_HOST = 'test/fixtures/gateway-host.ts'
const BUILT_CONSOLE = join(REPOSITORY, 'console/built')

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder for files that tests make once and copy; deleted after the run. */
    readonly preparedFolder: string
  }
}

/**
 * Creates the folder. A program that tests start is written into it when the first test asks for its path, with an empty
 * database for new gateways. Environment variables are needed by helpers that also run outside
 * of tests.
 */
export default async function setUp(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(project.config.env['TMPDIR'] ?? tmpdir(), 'sluice-prepared-'))
  project.provide('preparedFolder', folder)
  const database = join(folder, 'first-start.db')
  const programs = new Map<string, Promise<unknown>>()
  const requestServer = createServer(({ url = '' }, response) => {
    const name = url.slice(1)
    const root = join(folder, name)
    const program = programs.get(name) ?? writeProgramOf(name, root, database)
    programs.set(name, program)
    program.then(
      () => response.end(root),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => requestServer.listen(0, '127.0.0.1', resolve))
  process.env['TEST_PROGRAM_URL'] = `http://127.0.0.1:${(requestServer.address() as AddressInfo).port}`
  process.env['TEST_DATABASE_FILE'] = database
  process.env['TEST_COMPILE_CACHE'] = join(folder, 'compile-cache')
  process.env['TEST_POSTGRES_TEMPLATE'] = join(folder, 'postgres')
  return () => {
    requestServer.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function writeProgramOf(name: string, root: string, database: string): Promise<unknown> {
  const patches = (PATIENT_PROGRAMS as Readonly<Record<string, readonly Patch[]>>)[name]
  if (patches) return writePatched(root, patches)
  return Promise.all([writeProgramWithConsole(root), writeDatabase(database)])
}

async function writePatched(root: string, patches: readonly Patch[]): Promise<void> {
  // The host imports the sources beside it.
  const sources = patchedSources(patches, [GATEWAY_HOST])
  try {
    await writeProgram(root, 'linked', sources.root, {
      brief: true,
      others: [join(sources.root, GATEWAY_HOST)],
    })
  } finally {
    sources.discard()
  }
}

// The console is built before the tests; without a build, tests in a browser say so.
async function writeProgramWithConsole(program: string): Promise<void> {
  await writeProgram(program, 'bundled', undefined, { others: [join(REPOSITORY, GATEWAY_HOST)] })
  mkdirSync(join(program, 'console'))
  symlinkSync(BUILT_CONSOLE, join(program, 'console/built'))
}

// The state after the first start of a gateway, before it adds users: the migrations take half of a start.
async function writeDatabase(path: string): Promise<void> {
  const secrets = deriveSecrets(GATEWAY_SECRET)
  const store = await openSqliteStore({ path, secrets, onCallingThread: true })
  await store.close()
}
