import process from 'node:process'
import { getHeapSpaceStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

// Loaded into the program under test before all other modules: on SIGUSR2 it reports how many bytes survive a
// full garbage collection.

if (isMainThread)
  process.on('SIGUSR2', () => {
    const old = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')
    console.error(`bytes among the old: ${old?.space_used_size}`)
  })
