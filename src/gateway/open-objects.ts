import { join } from 'node:path'
import type { Environment } from '../config/environment.ts'
import type { FileLocation } from '../domain/options.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import { ObjectFolder } from '../store/object-folder.ts'
import type { ObjectPlace } from '../store/object-place.ts'

/** Minimum milliseconds between two log lines about the place. */
const LOG_INTERVAL_MS = 60_000

/** Services that the place of files needs. */
export interface ObjectServices {
  readonly environment: Pick<Environment, 'dataDir' | 'bucketKey'>
  readonly settings: () => Pick<Settings, 'options'>
  readonly warn: (fields: object, sentence: string) => void
}

/** The place of `options.files.store`, which is opened again when the option changes. */
export interface OpenObjects extends AsyncDisposable {
  readonly place: () => Promise<ObjectPlace>
}

/** Opens nothing yet. */
export function openObjects({ environment, settings, warn }: ObjectServices): OpenObjects {
  let opened: { readonly store: string; readonly place: Promise<ObjectPlace> } | undefined
  const report = reporting(warn)
  return {
    place() {
      const { store } = settings().options.files
      const text = JSON.stringify(store)
      if (opened?.store === text) return opened.place
      void opened?.place.then((former) => former.close()).catch(() => {})
      opened = { store: text, place: openPlace(store, environment).then(report) }
      return opened.place
    },
    async [Symbol.asyncDispose]() {
      await (await opened?.place)?.close()
    },
  }
}

async function openPlace(
  store: FileLocation,
  { dataDir, bucketKey }: ObjectServices['environment'],
): Promise<ObjectPlace> {
  if (store.kind === 'folder')
    return new ObjectFolder(store.path === '' ? join(dataDir, 'files') : store.path)
  // The configuration is refused without them.
  if (!bucketKey) throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set')
  // Loaded on demand, because few gateways have a bucket.
  const { ObjectBucket } = await import('../upstreams/object-bucket.ts')
  return new ObjectBucket(store, bucketKey)
}

/** Returns a function that makes failures of a place `storage_unavailable`, and logs them. */
function reporting(warn: ObjectServices['warn']): (place: ObjectPlace) => ObjectPlace {
  let loggedAt = Number.NEGATIVE_INFINITY
  const checked = async <Result>(work: Promise<Result>): Promise<Result> => {
    try {
      return await work
    } catch (error) {
      if (performance.now() - loggedAt > LOG_INTERVAL_MS) {
        loggedAt = performance.now()
        warn({ err: error }, 'files cannot be read or written (options.files.store)')
      }
      const message = 'files cannot be read or written at the moment; try again'
      throw new GatewayError('storage_unavailable', message, { retryAfter: 60, cause: error })
    }
  }
  return (place) => ({
    hasRoom: () => checked(place.hasRoom()),
    put: (name, bytes) => checked(place.put(name, bytes)),
    get: (name, range) => checked(place.get(name, range)),
    remove: (name) => checked(place.remove(name)),
    close: () => place.close(),
  })
}
