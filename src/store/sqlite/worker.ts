import { flushCompileCache } from 'node:module'
import { parentPort } from 'node:worker_threads'
import { serveDatabase } from './serve-database.ts'

// Code is saved for the next start at once: flags of V8 that the gateway sets later would make it invalid.
if (parentPort) serveDatabase(parentPort, flushCompileCache)
