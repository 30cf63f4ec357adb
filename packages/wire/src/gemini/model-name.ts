const PREFIX = 'models/'

/** Name of a model without the prefix `models/` that paths and answers may have. */
export function modelOf(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
}

/** Prefixes of names that are already complete, such as `tunedModels/mine`. */
const COLLECTION = /^(?:models|tunedModels|publishers)\//

/** Resource name of a model; `model` is the upstream's name for it. */
export function resourceName(model: string): string {
  return COLLECTION.test(model) ? model : `models/${model}`
}

/** Path of a model's method, relative to the upstream's base URL. */
export function methodPath(model: string, method: string): string {
  return `/${resourceName(model).split('/').map(encodeURIComponent).join('/')}:${method}`
}

/** Path of the method that generates content, as a whole or as a stream of events. */
export function answerPath(model: string, stream: boolean): string {
  return methodPath(model, stream ? 'streamGenerateContent?alt=sse' : 'generateContent')
}
