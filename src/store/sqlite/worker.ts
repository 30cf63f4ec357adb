import { parentPort } from 'node:worker_threads'
import { serveDatabase } from './serve-database.ts'

if (parentPort) serveDatabase(parentPort)
