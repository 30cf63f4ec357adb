#!/usr/bin/env -S MALLOC_MMAP_THRESHOLD_=32768 node --max-semi-space-size=32 --single-threaded-gc --no-allocation-site-pretenuring --v8-pool-size=1
// Plain JavaScript that any Node can parse: finds a Node that is new enough, then runs the command. Calls live for a short
// while and by the thousand, and what they leave is collected young: in room for many of them, by one thread (several share so little
// work that they wait for each other), with nothing made among the old, whatever V8 takes for long-lived. Nodes from
// 20 to 26 know these flags: one that it does not know would end it before it reads on.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { dirname } from 'node:path'
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'

// Those of the first line.
const FLAGS = [
  '--max-semi-space-size=32',
  '--single-threaded-gc',
  '--no-allocation-site-pretenuring',
  '--v8-pool-size=1',
]

// That of the first line, for the C library (glibc), which reads it as a process begins: buffers of 32 KiB
// and more come from the system one by one and go back to it. Otherwise what a storm has needed stays, full
// of holes: only the end of the C library's memory is ever given back.
const VARIABLE = ['MALLOC_MMAP_THRESHOLD_', '32768']

// Older ones cut text at NUL in node:sqlite, or cannot run TypeScript.
function newEnough([major, minor]) {
  return (major === 24 && minor >= 16) || (major === 26 && minor >= 1) || major > 26
}

function bundledNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve(
      `node-${process.platform}-${process.arch}/package.json`,
    )
    const path = manifest.replace(/package\.json$/, 'bin/node')
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}

function runWith(node) {
  const env = { [VARIABLE[0]]: VARIABLE[1], ...process.env }
  const child = spawn(node, [...FLAGS, ...process.argv.slice(1)], { stdio: 'inherit', env })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    } else process.exit(code ?? 1)
  })
}

// V8 makes a full collection whenever bodies amount to 64 MB, unless it is told to count them with the rest.
// Not on the first line: old Nodes do not know the flag, nor do those after V8 14.7.
function hasToBeToldOfBodies([major, minor]) {
  return major < 14 || (major === 14 && minor < 8)
}

// A gateway that was started without the variable begins anew with it, as the same process; whoever talks to
// it over a channel of Node's would lose that.
function beginAnew() {
  const [name, value] = VARIABLE
  if (process.platform !== 'linux' || process.argv[2] !== 'start' || process.env[name] !== undefined) return
  if (process.execve === undefined || process.send !== undefined) return
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, args, { ...process.env, [name]: value })
}

if (newEnough(process.versions.node.split('.').map(Number))) {
  beginAnew()
  if (hasToBeToldOfBodies(process.versions.v8.split('.').map(Number)))
    setFlagsFromString('--external-memory-accounted-in-global-limit')
  // What was compiled once, types stripped and all, is not compiled again: a start is faster and smaller for
  // it.
  const { directory } = nodeModule.enableCompileCache()
  // Its threads know of it by this.
  if (directory) process.env.NODE_COMPILE_CACHE ??= dirname(directory)
  // A clone runs its sources; a package, which has none, runs what was built from them.
  const source = new URL('../src/cli/index.ts', import.meta.url)
  const built = new URL('../dist/cli/index.js', import.meta.url)
  await import((existsSync(source) ? source : built).href)
} else {
  const node = bundledNode()
  if (node) runWith(node)
  else {
    console.error(
      `sluice needs Node.js 24.16 or newer (or 26.1 or newer); this is ${process.version} at ${process.execPath}.\n` +
        'On Linux "npm ci" brings a fitting one along unless optional dependencies are left out.',
    )
    process.exit(1)
  }
}
