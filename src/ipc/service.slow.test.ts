import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import type { HelperRequests } from '../../test/fixtures/service-helper.ts'
import { Service, type ServiceEnded, type ServiceOptions } from './service.ts'
import { startProcess } from './start-process.ts'
import { startThread } from './start-thread.ts'

const HELPER = '../../test/fixtures/service-helper'
const IPC = import.meta.url.slice(0, import.meta.url.lastIndexOf('/'))

const startHelperThread = (name: string, maxOldMb = 64): ReturnType<typeof startThread> =>
  startThread(HELPER, import.meta.url, { name, maxOldMb })
const startHelperProcess = (_: string, maxOldMb = 64): ReturnType<typeof startProcess> =>
  startProcess(HELPER, import.meta.url, { maxOldMb })

const opened: Service<HelperRequests>[] = []
afterEach(() => Promise.all(opened.splice(0).map((service) => service.close())))

function open(options: Partial<ServiceOptions> = {}): Service<HelperRequests> {
  const service = new Service<HelperRequests>({ name: 'test', start: startHelperThread, ...options })
  opened.push(service)
  return service
}

const ended = (reason: ServiceEnded['reason']): unknown =>
  expect.objectContaining({ reason, name: 'ServiceEnded' })

const KINDS = [
  ['thread', startHelperThread],
  ['process', startHelperProcess],
] as const

test.each(KINDS)('a helper %s answers requests, which arrive in their order', async (kind, start) => {
  const service = open({ start })
  expect(service.isRunning).toBe(false)
  const { pid, threadId } = await service.request('whereabouts', undefined)
  expect(pid === process.pid).toBe(kind === 'thread')
  expect(threadId === 0).toBe(kind === 'process')
  const requests = [
    service.request('later', 7),
    service.request('note', 1),
    service.request('note', 2),
    service.request('noted', undefined),
    service.request('double', 21),
  ]
  expect(await Promise.all(requests)).toEqual([7, undefined, undefined, [1, 2], 42])
})

test.each(KINDS)('a helper %s reports errors with message and stack, and continues', async (_, start) => {
  const service = open({ start })
  const error: unknown = await service.request('fail', 'not that').catch((failure: unknown) => failure)
  expect(error).toMatchObject({ message: 'not that', stack: expect.stringContaining('service-helper.ts') })
  await expect(service.request('unsendable', undefined)).rejects.toThrow('could not be cloned')
  await expect(service.request('double', (() => 0) as never)).rejects.toThrow('could not be cloned')
  expect(await service.request('double', 4)).toBe(8)
})

test.each(KINDS)(
  'pending requests of a %s that ends fail with one error, and the next request starts it again',
  async (_, start) => {
    const service = open({ start })
    const before = await service.request('whereabouts', undefined)
    const pending = [
      service.request('never', undefined),
      service.request('exit', 3),
      service.request('double', 1),
    ]
    const results = await Promise.allSettled(pending)
    expect(results).toEqual(results.map(() => ({ status: 'rejected', reason: ended('ended') })))
    const errors = results.map((result) => result.status === 'rejected' && result.reason)
    expect(new Set(errors).size).toBe(1)
    expect(String(errors[0])).toBe('ServiceEnded: the helper "test" has ended: exit code 3')
    expect(await service.request('whereabouts', undefined)).not.toEqual(before)
  },
)

test.each(KINDS)(
  'a stateful helper %s is not started again after its end: later requests fail',
  async (_, start) => {
    const service = open({ start, isStateful: true })
    expect(await service.request('double', 1)).toBe(2)
    for (const error of [service.request('exit', 3), service.request('double', 1)])
      await expect(error).rejects.toEqual(ended('ended'))
    await expect(service.request('double', 1)).rejects.toEqual(ended('ended'))
    expect(service.isRunning).toBe(false)
  },
)

test.each(KINDS)(
  'a helper %s that takes longer than a request may is ended, and the next request starts it again',
  async (_, start) => {
    const service = open({ start })
    await service.request('double', 1)
    await expect(service.request('spin', undefined, { timeoutMs: 50 })).rejects.toEqual(ended('late'))
    expect(await service.request('double', 2, { timeoutMs: 60_000 })).toBe(4)
  },
)

test.each(KINDS)(
  'the time limit of a request to a %s begins when its code is loaded, and before that there is one for loading',
  async (_, start) => {
    const { setTimer, runNext, pauses } = timers()
    const service = open({ start, setTimer })
    const request = service.request('double', 2, { timeoutMs: 500 })
    expect(pauses()).toEqual([60_500])
    expect(await request).toBe(4)
    expect(pauses()).toEqual([])
    const late = service.request('never', undefined, { timeoutMs: 500 })
    expect(pauses()).toEqual([500])
    runNext()
    await expect(late).rejects.toEqual(ended('late'))
  },
)

test('a helper that never finishes loading is ended, and its request fails', async () => {
  const { setTimer, runNext } = timers()
  const start = (): Worker => new Worker('setInterval(() => {}, 1_000)', { eval: true })
  const service = open({ start, setTimer })
  const request = service.request('double', 2, { timeoutMs: 500 })
  runNext()
  await expect(request).rejects.toEqual(ended('late'))
})

test.each(KINDS)(
  'a helper %s that needs more heap than it may ends, and this process continues',
  async (_, start) => {
    const service = open({ start: (name) => start(name, 24) })
    await expect(service.request('hoard', undefined)).rejects.toEqual(ended('ended'))
    expect(await service.request('double', 3)).toBe(6)
  },
)

test.each(KINDS)(
  'a helper %s is ended when the service is closed, which refuses requests from then on',
  async (_, start) => {
    const service = open({ start })
    const { pid } = await service.request('whereabouts', undefined)
    const pending = expect(service.request('never', undefined)).rejects.toEqual(ended('closed'))
    await service.close()
    expect(isAlive(pid)).toBe(pid === process.pid)
    await pending
    await expect(service.request('double', 1)).rejects.toEqual(ended('closed'))
    service.start()
    expect(service.isRunning).toBe(false)
  },
)

test.each(KINDS)(
  'a helper %s does not keep its parent alive, except while a request is pending if that is asked for',
  async (kind) => {
    for (const [keepsAlive, printed] of [
      [false, ''],
      [true, '42'],
    ] as const) {
      const code = `service.request('double', 21).then((result) => process.stdout.write(String(result)))`
      const { stdout, exit } = runScript(kind, keepsAlive, code)
      expect([await exit, stdout()]).toEqual([0, printed])
    }
  },
)

test.each(KINDS)('a helper %s ends with its parent', async (kind) => {
  const code = `service.request('whereabouts', undefined).then(({ pid }) => process.stdout.write(String(pid)))
    service.request('never', undefined)`
  const { stdout, exit, child } = runScript(kind, true, code)
  await once(child.stdout, 'data')
  const pid = Number(stdout())
  expect(pid === child.pid).toBe(kind === 'thread')
  child.kill('SIGKILL')
  await exit
  await expect.poll(() => isAlive(pid)).toBe(false)
})

/** Whether a process runs. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Runs a script in its own process, with a service of the given kind. */
function runScript(kind: 'thread' | 'process', keepsAlive: boolean, code: string) {
  const begin =
    kind === 'thread'
      ? `startThread(helper, from, { name: 'test' })`
      : `startProcess(helper, from, { maxOldMb: 64 })`
  const script = `import { Service } from '${IPC}/service.ts'
    import { startThread } from '${IPC}/start-thread.ts'
    import { startProcess } from '${IPC}/start-process.ts'
    const [helper, from] = ['${HELPER}', '${import.meta.url}']
    const service = new Service({ name: 'test', keepsAlive: ${keepsAlive}, start: () => ${begin} })
    ${code}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.on('data', (bytes: Buffer) => (text += String(bytes)))
  const exit = once(child, 'close').then(([status]) => status as number | null)
  return { child, exit, stdout: () => text }
}

test('a request to a process that the system cannot start fails, and its parent continues', async () => {
  const code = `process.execPath = '/no/such/file'
    service.request('double', 21).catch(({ reason }) => setImmediate(() => process.stdout.write(reason)))`
  const { stdout, exit } = runScript('process', true, code)
  expect([await exit, stdout()]).toEqual([0, 'not started'])
})

test('buffers are moved to a thread and back instead of copied', async () => {
  const service = open()
  const bytes = Uint8Array.from([1, 2, 3])
  const result = service.request('increment', bytes, { transfer: [bytes.buffer] })
  expect(bytes.length).toBe(0)
  expect(await result).toEqual(Uint8Array.from([2, 3, 4]))
  expect(await service.request('kept', undefined)).toBe(0)
})

test('the class of an error is kept if both sides know its form', async () => {
  const service = open({
    errors: { pack: () => undefined, unpack: (packed) => new TypeError((packed as Error).message) },
  })
  await expect(service.request('fail', 'of this class')).rejects.toEqual(new TypeError('of this class'))
})

/** Timers that a test runs, with their milliseconds. */
function timers() {
  const set: { readonly ms: number; readonly run: () => void }[] = []
  const setTimer: NonNullable<ServiceOptions['setTimer']> = (run, ms) => {
    const timer = { ms, run }
    set.push(timer)
    return { [Symbol.dispose]: () => void (set.includes(timer) && set.splice(set.indexOf(timer), 1)) }
  }
  const runNext = (): void => set.shift()?.run()
  return { setTimer, runNext, pauses: () => set.map(({ ms }) => ms) }
}

test('a helper that cannot be started is tried again with longer pauses, in which requests fail', async () => {
  const { setTimer, runNext, pauses } = timers()
  const events: string[] = []
  const watch = {
    failed: (name: string, reason: unknown): void => void events.push(`${name}: ${String(reason)}`),
    started: (name: string): void => void events.push(`${name} has started`),
  }
  let cause: 'throws' | 'ends' | undefined = 'throws'
  const start = (): ReturnType<typeof startThread> => {
    if (cause === 'throws') throw new Error('no more threads')
    return startThread(cause === 'ends' ? './no-such-file' : HELPER, import.meta.url, { name: 'test' })
  }
  const service = open({ start, watch, setTimer })
  const before: number[] = []
  for (let turn = 0; turn < 8; turn += 1) {
    await expect(service.request('double', 1)).rejects.toEqual(ended('not started'))
    expect(events).toHaveLength(turn + 1)
    before.push(...pauses())
    runNext()
  }
  expect(before).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(events[0]).toBe('test: Error: no more threads')
  cause = 'ends'
  runNext()
  await expect(service.request('double', 1)).rejects.toEqual(ended('ended'))
  expect(events.at(-1)).toContain('Cannot find module')
  expect(pauses()).toEqual([5_000])
  cause = undefined
  runNext()
  expect(await service.request('double', 1)).toBe(2)
  expect(events.at(-1)).toBe('test has started')
  // The next failure begins with the shortest pause.
  await service.end()
  cause = 'throws'
  await expect(service.request('double', 1)).rejects.toEqual(ended('not started'))
  expect(pauses()).toEqual([100])
  await service.close()
  expect(pauses()).toEqual([])
})

test('a helper is ended after the idle time, which begins with each start and after each request', async () => {
  const { setTimer, runNext, pauses } = timers()
  const begun: number[] = []
  const service = open({ idleMs: 500, setTimer: (run, ms) => (begun.push(ms), setTimer(run, ms)) })
  service.start()
  expect(pauses()).toEqual([500])
  service.start()
  expect([begun, pauses()]).toEqual([[500, 500], [500]])
  const request = service.request('double', 1)
  expect(pauses()).toEqual([])
  await request
  expect(pauses()).toEqual([500])
  runNext()
  expect(service.isRunning).toBe(false)
  expect(await service.request('double', 2)).toBe(4)
})

test('the service is ready when the helper has loaded its code or has ended', async () => {
  const service = open()
  await service.ready
  expect(service.isRunning).toBe(false)
  service.start()
  await service.ready
  expect(service.isRunning).toBe(true)
  const missing = open({ start: () => startThread('./no-such-file', import.meta.url, { name: 'test' }) })
  missing.start()
  await missing.ready
  expect(missing.isRunning).toBe(false)
})
