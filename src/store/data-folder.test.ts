import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../test/stores/rows.ts'
import {
  type DataFolderHolder,
  DataFolderInUse,
  lockDataFolder,
  waitAndLockDataFolder,
  secretOfDataFolder,
} from './data-folder.ts'

const HOLDER = `
  const { lockDataFolder } = await import(process.argv[1])
  const lock = lockDataFolder(process.argv[2], process.argv[3])
  console.log('locked')
  setInterval(() => lock, 1000)
`

async function holderOf(folder: string, holder: DataFolderHolder = 'gateway'): Promise<ChildProcess> {
  const module = new URL('./data-folder.ts', import.meta.url).href
  const child = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, module, folder, holder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout ?? child, 'data')
  return child
}

test('a data folder is created with access for its owner only', () => {
  const folder = join(temporaryFolder(), 'deep', 'data')
  lockDataFolder(folder, 'gateway').release()
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test.each([0o777, 0o702, 0o1777])('a data folder that others may write to is refused: mode %o', (mode) => {
  const folder = temporaryFolder()
  chmodSync(folder, mode)
  expect(() => lockDataFolder(folder, 'gateway')).toThrow(
    `other accounts of this machine may write to the data folder ${folder}: keep them out (chmod 700 ${folder})`,
  )
  expect(readdirSync(folder)).toEqual([])
})

test.each([
  [0o755, true],
  [0o711, true],
  [0o770, true],
  [0o700, false],
])('there is a warning about a data folder that others may enter: mode %o, %s', (mode, isWarnedOf) => {
  const folder = temporaryFolder()
  chmodSync(folder, mode)
  const lock = lockDataFolder(folder, 'gateway')
  lock.release()
  expect(lock.warning !== undefined).toBe(isWarnedOf)
  if (isWarnedOf) expect(lock.warning).toContain(`may enter the data folder ${folder}`)
})

test('the lock file of a data folder is accessible to its owner only, and refused if it is a symbolic link', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'lock.db')
  lockDataFolder(folder, 'gateway').release()
  expect(statSync(file).mode & 0o777).toBe(0o600)
  chmodSync(file, 0o644)
  lockDataFolder(folder, 'gateway').release()
  expect(statSync(file).mode & 0o777).toBe(0o600)
  rmSync(file)
  symlinkSync(join(folder, 'elsewhere'), file)
  expect(() => lockDataFolder(folder, 'gateway')).toThrow(`${file} is a link: put a file in its place`)
  expect(existsSync(join(folder, 'elsewhere'))).toBe(false)
})

test('a second gateway on the same data folder is refused, and one on another data folder is not', async () => {
  const folder = temporaryFolder()
  const { pid } = await holderOf(folder)
  expect(() => lockDataFolder(folder, 'gateway')).toThrow(
    `${folder} is in use by process ${pid}: stop the gateway that runs on it, or choose another DATA_DIR`,
  )
  const name = join(folder, 'lock.pid')
  writeFileSync(name, '1 another-host\n')
  expect(() => lockDataFolder(folder, 'gateway')).toThrow('in use by process 1 on another-host:')
  for (const text of ['', 'nothing', `${2 ** 22 + 1} ${hostname()}\n`]) {
    writeFileSync(name, text)
    expect(() => lockDataFolder(folder, 'gateway')).toThrow('in use by another process:')
  }
  lockDataFolder(temporaryFolder(), 'gateway').release()
})

test.each(['gateway', 'command'] as const)(
  'a database that a %s has locked cannot be locked with another data folder, which stays free',
  (holder) => {
    const [folder, other] = [temporaryFolder(), temporaryFolder()]
    const database = join(temporaryFolder(), 'sluice.db')
    const lock = lockDataFolder(folder, holder, database)
    expect(() => lockDataFolder(other, 'command', database)).toThrow(
      expect.objectContaining({ holder, path: database }),
    )
    lockDataFolder(other, 'gateway').release()
    lock.release()
    expect(readdirSync(dirname(database))).toEqual(['sluice.db.lock'])
    lockDataFolder(other, 'gateway', database).release()
  },
)

test.runIf(process.geteuid?.() === 0)(
  'the locks that a command of root makes belong to the owner of their folders',
  () => {
    const [folder, place] = [temporaryFolder(), temporaryFolder()]
    for (const each of [folder, place]) chownSync(each, 1234, 1234)
    lockDataFolder(folder, 'command', join(place, 'sluice.db')).release()
    const owners = [join(folder, 'lock.db'), join(place, 'sluice.db.lock')].map((file) => statSync(file).uid)
    expect(owners).toEqual([1234, 1234])
  },
)

test('a database whose folder is not there cannot be locked, and the error names it', () => {
  const database = join(temporaryFolder(), 'none', 'sluice.db')
  expect(() => lockDataFolder(temporaryFolder(), 'gateway', database)).toThrow(
    `the database ${database} is not there and cannot be made`,
  )
})

test('a data folder can be locked again once the process that held its lock is killed', async () => {
  const folder = temporaryFolder()
  const child = await holderOf(folder)
  child.kill('SIGKILL')
  await once(child, 'exit')
  lockDataFolder(folder, 'gateway').release()
})

test('a data folder can be locked again once its lock is released', () => {
  const folder = temporaryFolder()
  const lock = lockDataFolder(folder, 'gateway')
  expect(() => lockDataFolder(folder, 'gateway')).toThrow(/in use/)
  lock.release()
  expect(readdirSync(folder)).toEqual(['lock.db'])
  lockDataFolder(folder, 'gateway').release()
})

test.each(['gateway', 'command'] as const)(
  'locking a data folder that a %s holds fails with an error that names that kind of holder',
  async (holder) => {
    const folder = temporaryFolder()
    const child = await holderOf(folder, holder)
    for (const other of ['gateway', 'command'] as const) {
      expect(() => lockDataFolder(folder, other)).toThrow(expect.objectContaining({ holder }))
    }
    child.kill('SIGKILL')
    await once(child, 'exit')
    for (const other of ['gateway', 'command'] as const) lockDataFolder(folder, other).release()
  },
)

test.each(['gateway', 'command'] as const)(
  'a %s waits for the data folder while a command holds its lock',
  async (holder) => {
    const folder = temporaryFolder()
    const child = await holderOf(folder, 'command')
    const turn = { came: false }
    const waiting = waitAndLockDataFolder(folder, holder).then((lock) => {
      turn.came = true
      return lock
    })
    await sleep(200)
    expect(turn.came).toBe(false)
    child.kill('SIGKILL')
    ;(await waiting).release()
  },
)

test('a command does not wait for a data folder that a gateway holds, which may run for months', async () => {
  const folder = temporaryFolder()
  await holderOf(folder, 'gateway')
  await expect(waitAndLockDataFolder(folder, 'command')).rejects.toThrow(DataFolderInUse)
})

test('the gateway secret is created once, of 32 random bytes, in a file that only its owner can read', () => {
  const folder = temporaryFolder()
  const secret = secretOfDataFolder(folder)
  expect(secret).toMatch(/^[0-9a-f]{64}$/)
  expect(secretOfDataFolder(folder)).toBe(secret)
  expect(statSync(join(folder, 'secret')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe(`${secret}\n`)
  rmSync(join(folder, 'secret'))
  expect(secretOfDataFolder(folder)).not.toBe(secret)
})

test('a gateway secret that the operator created is used unchanged, and its file is restricted to its owner', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'secret'), 'put here by hand, with care\n', { mode: 0o644 })
  expect(secretOfDataFolder(folder)).toBe('put here by hand, with care')
  expect(statSync(join(folder, 'secret')).mode & 0o777).toBe(0o600)
})

test.each(['', 'too short'])(
  'a file "secret" of %j, as after a full disk, is refused by its name',
  (text) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'secret'), text)
    expect(() => secretOfDataFolder(folder)).toThrow(
      `the file ${join(folder, 'secret')} has ${text.length} characters, too few for a secret`,
    )
  },
)

test('the gateway secret is not written to an existing file, and not read from a symbolic link', () => {
  const folder = temporaryFolder()
  const planted = join(folder, 'planted')
  writeFileSync(planted, 'planted', { mode: 0o644 })
  const unfinished = join(folder, 'secret.unfinished')
  symlinkSync(planted, unfinished)
  expect(secretOfDataFolder(folder)).toMatch(/^[0-9a-f]{64}$/)
  expect(readFileSync(planted, 'utf8')).toBe('planted')
  rmSync(join(folder, 'secret'))
  mkdirSync(unfinished)
  expect(() => secretOfDataFolder(folder)).toThrow()
  rmSync(unfinished, { recursive: true })
  writeFileSync(unfinished, 'planted', { mode: 0o666 })
  expect(secretOfDataFolder(folder)).toMatch(/^[0-9a-f]{64}$/)
  expect(statSync(join(folder, 'secret')).mode & 0o777).toBe(0o600)
  rmSync(join(folder, 'secret'))
  symlinkSync(planted, join(folder, 'secret'))
  expect(() => secretOfDataFolder(folder)).toThrow(
    `${join(folder, 'secret')} is a link: put a file in its place`,
  )
})
