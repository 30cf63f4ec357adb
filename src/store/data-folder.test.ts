import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../test/store-rows.ts'
import { lockDataFolder, secretOfDataFolder } from './data-folder.ts'

const HOLDER = `
  const { lockDataFolder } = await import(process.argv[1])
  const lock = lockDataFolder(process.argv[2])
  console.log('locked')
  setInterval(() => lock, 1000)
`

async function holderOf(folder: string): Promise<ChildProcess> {
  const module = new URL('./data-folder.ts', import.meta.url).href
  const child = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, module, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout ?? child, 'data')
  return child
}

test('a data folder is made for its owner alone', () => {
  const folder = join(temporaryFolder(), 'deep', 'data')
  lockDataFolder(folder).release()
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('a second gateway on the same folder is refused, and one on another is not', async () => {
  const folder = temporaryFolder()
  await holderOf(folder)
  expect(() => lockDataFolder(folder)).toThrow(/in use by another process.*DATA_DIR/)
  lockDataFolder(temporaryFolder()).release()
})

test('a folder is free again when its holder is killed', async () => {
  const folder = temporaryFolder()
  const child = await holderOf(folder)
  child.kill('SIGKILL')
  await once(child, 'exit')
  lockDataFolder(folder).release()
})

test('a folder is free again when it is released', () => {
  const folder = temporaryFolder()
  const lock = lockDataFolder(folder)
  expect(() => lockDataFolder(folder)).toThrow(/in use/)
  lock.release()
  lockDataFolder(folder).release()
})

test('the secret is made once, of 32 random bytes, for its owner alone', () => {
  const folder = temporaryFolder()
  const secret = secretOfDataFolder(folder)
  expect(secret).toMatch(/^[0-9a-f]{64}$/)
  expect(secretOfDataFolder(folder)).toBe(secret)
  expect(statSync(join(folder, 'secret')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe(`${secret}\n`)
  rmSync(join(folder, 'secret'))
  expect(secretOfDataFolder(folder)).not.toBe(secret)
})

test('a secret that the operator put there is taken as it is', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'secret'), 'put here by hand, with care\n')
  expect(secretOfDataFolder(folder)).toBe('put here by hand, with care')
})
