import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** A Node.js older than the program requires, if the machine has one. */
export const OLD_NODE = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (path) =>
    existsSync(path) &&
    /^v2[0-3]\./.test(spawnSync(path, ['--version'], { timeout: 60_000 }).stdout.toString()),
)

if (OLD_NODE === undefined)
  console.info('a Node that is too old is left out: there is none in /usr/bin or /usr/local/bin')
