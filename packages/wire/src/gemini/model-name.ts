const PREFIX = 'models/'

/** Returns the name of a model without the prefix `models/`, which paths and responses may have. */
export function modelWithoutPrefix(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
}

/** Matches names that have a prefix already, such as `tunedModels/mine`. */
const COLLECTION = /^(?:models|tunedModels|publishers)\//

/** Name of a model with its prefix. `model` is the upstream's name. */
export function modelResourceName(model: string): string {
  return COLLECTION.test(model) ? model : `models/${model}`
}

/** Path for calling a method of a model, relative to the upstream's base URL. */
export function methodPath(model: string, method: string): string {
  return `/${modelResourceName(model).split('/').map(encodeURIComponent).join('/')}:${method}`
}

/** Path of the method that generates content, in one response or as a stream of events. */
export function generateContentPath(model: string, stream: boolean): string {
  return methodPath(model, stream ? 'streamGenerateContent?alt=sse' : 'generateContent')
}
