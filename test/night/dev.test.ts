import { type ChildProcess, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort, statusOn } from '../fixtures/port.ts'
import { family } from '../operations/process-family.ts'
import { eventually } from '../operations/program.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
// A copy, because changing a source file here would affect other tests.
const folder = mkdtempSync(join(tmpdir(), 'sluice-clone-'))
const temporary = join(folder, 'temporary')
let [out, port] = ['', 0]
let dev: ChildProcess

beforeAll(async () => {
  for (const part of ['src', 'console', 'tools', 'package.json', 'tsconfig.json'])
    cpSync(join(REPOSITORY, part), join(folder, part), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
  mkdirSync(temporary)
  port = await freePort()
  const { DATA_DIR: _, ...env } = process.env
  dev = spawn('npm', ['run', 'dev'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    // As in a terminal, where Ctrl-C goes to all processes of the group.
    detached: true,
    env: { ...env, PORT: String(port), TMPDIR: temporary },
  })
  for (const stream of [dev.stdout, dev.stderr])
    stream?.on('data', (text: Buffer) => (out += text.toString()))
})

afterAll(() => {
  if (dev.exitCode === null && dev.signalCode === null && dev.pid !== undefined)
    process.kill(-dev.pid, 'SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const starts = (): number => out.split(`Sluice listens on http://127.0.0.1:${port} `).length - 1

test('npm run dev serves calls from the source files, restarts when one of them changes, and stops with Ctrl-C', async () => {
  await eventually(() => starts() === 1 && out.includes('hot reload: '), 'the gateway and the console run')
  const keys = [...out.matchAll(/API key +(sk-\w+)/g)].map(([, key]) => key)
  expect(keys).toHaveLength(1)
  const call = async (): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${keys[0]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo-chat', messages: [{ role: 'user', content: 'Hello!' }] }),
    })
    await answer.text()
    return answer.status
  }
  expect(await call()).toBe(200)

  const page = /hot reload: (\S+)\//.exec(out)?.[1] ?? ''
  expect(await (await fetch(page)).text()).toContain('/@vite/client')
  expect((await fetch(`${page}/api/status`)).status).toBe(200)

  utimesSync(join(folder, 'src/domain/price.ts'), new Date(), new Date())
  await eventually(() => starts() === 2, 'the gateway has started again')
  expect(out).toContain('src/domain/price.ts has changed')
  // The key of the first start is still valid.
  expect(await call()).toBe(200)

  const pids = family(dev.pid ?? 0)
  process.kill(-(dev.pid ?? 0), 'SIGINT')
  await eventually(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), 'no process is left')
  expect(await statusOn(port, '/readyz').catch(() => undefined)).not.toBe(200)
  expect(readdirSync(temporary).filter((name) => name.startsWith('sluice-'))).toEqual([])
})
