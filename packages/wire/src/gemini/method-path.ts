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
