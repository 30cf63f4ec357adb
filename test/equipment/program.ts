import process from 'node:process'
import { fileURLToPath } from 'node:url'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
/** The secret of the gateways that tests start. */
export const GATEWAY_SECRET = 'a-secret-for-tests-0123456789abcdef'
/** A database with that secret and the current schema; it exists once `programFolder` has settled. */
export const { TEST_DATABASE_FILE } = process.env
const { TEST_PROGRAM_URL, TEST_COMPILE_CACHE, PATH, HOME } = process.env
let folder: Promise<string> | undefined

/** The folder of the program that tests start: bundled once for a run; outside of a run, the repository. */
export function programFolder(): Promise<string> {
  return (folder ??= TEST_PROGRAM_URL === undefined ? Promise.resolve(REPOSITORY) : bundled(TEST_PROGRAM_URL))
}

async function bundled(url: string): Promise<string> {
  const answer = await fetch(url)
  const text = await answer.text()
  if (!answer.ok) throw new Error(`the program cannot be bundled: ${text}`)
  return text
}

/**
 * The environment of a test's processes: little more than they need, and the folder of compiled code that
 * others cached.
 */
export const BASE_ENVIRONMENT: Readonly<Record<string, string | undefined>> = {
  PATH,
  HOME,
  ...(TEST_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE: TEST_COMPILE_CACHE }),
}
