import { Worker } from 'node:worker_threads'

/** Sends requests until it receives a message, and then reports the longest latency. */
const PROBE = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { get } = require('node:http')
  let isOver = false
  parentPort.once('message', () => { isOver = true })
  const ask = () => new Promise((resolve, reject) =>
    get(workerData, { agent: false }, (answer) => answer.resume().on('end', resolve)).on('error', reject))
  ;(async () => {
    const waits = []
    do {
      const started = performance.now()
      await ask()
      waits.push(performance.now() - started)
    } while (!isOver)
    parentPort.postMessage(Math.max(...waits))
  })()
`

/**
 * The longest latency in milliseconds of another client while the work was done. That client runs in a
 * separate thread, so that work in this thread does not delay it.
 */
export async function longestWaitDuring(url: string, work: () => Promise<unknown>): Promise<number> {
  const client = new Worker(PROBE, { eval: true, workerData: `${url}/healthz` })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  client.once('message', resolve)
  client.once('error', reject)
  try {
    await work()
    client.postMessage('over')
    return await promise
  } finally {
    await client.terminate()
  }
}
