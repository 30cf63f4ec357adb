import { execFileSync, spawnSync } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const cwd = fileURLToPath(new URL('../..', import.meta.url))

/** Without npm's own variables, because npm passes on the settings of the run that started the tests. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))

test('npx sluice prints what the command prints and no warnings of npm, on every Node.js that runs npm', () => {
  const { status, stderr } = spawnSync('npx', ['--no-install', 'sluice', '--version'], {
    cwd,
    env,
    encoding: 'utf8',
    timeout: 240_000,
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test('npm prints no engine warning, because the Node.js that runs the commands is a dependency', () => {
  expect(
    execFileSync('npm', ['config', 'get', 'loglevel'], {
      cwd,
      env,
      encoding: 'utf8',
      timeout: 240_000,
    }).trim(),
  ).toBe('error')
})
