import { execFileSync } from 'node:child_process'
import process from 'node:process'
import { expect, test } from 'vitest'

/** Prints the URLs of all modules that the main thread of a start loads. */
const START = `
  import { registerHooks } from 'node:module'
  const seen = []
  registerHooks({ load: (url, context, next) => { seen.push(url); return next(url, context) } })
  const [, src] = process.argv
  for (const path of ['cli/main.ts', 'cli/start.ts', 'cli/load-config.ts', 'gateway/main.ts', 'gateway/serve.ts'])
    await import(src + path)
  const { readConfig } = await import(src + 'config/config.ts')
  const { readEnvironment } = await import(src + 'config/environment.ts')
  readConfig(readEnvironment({ DATA_DIR: '/nowhere' }, {}, '/'))
  // Without a command, the program prints its help and fails.
  process.exitCode = 0
  process.stdout.write('\\n' + JSON.stringify(seen))
`

test('a gateway start loads neither Kysely nor a database driver, and without a configuration file no YAML parser', () => {
  const sources = new URL('../', import.meta.url).href
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', START, sources], {
    encoding: 'utf8',
    timeout: 240_000,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const seen = JSON.parse(output.split('\n').at(-1) ?? '') as string[]
  const packages = new Set(seen.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1]))
  expect([...packages]).toContain('zod')
  for (const name of ['kysely', 'pg', 'mysql2', 'yaml', 'chokidar', 'undici', 'openid-client'])
    expect([...packages]).not.toContain(name)
})
