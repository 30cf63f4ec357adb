/** Collections whose names are whole: `tunedModels/mine`. */
const COLLECTION = /^(?:models|tunedModels|publishers)\//

/** Name of a model among its upstream's resources; `model` is the name that the upstream knows. */
export function resourceName(model: string): string {
  return COLLECTION.test(model) ? model : `models/${model}`
}

/** Path of a model's method below an upstream's base URL. */
export function methodPath(model: string, method: string): string {
  return `/${resourceName(model).split('/').map(encodeURIComponent).join('/')}:${method}`
}

/** Path of the method that answers, whole or as a stream of events. */
export function answerPath(model: string, stream: boolean): string {
  return methodPath(model, stream ? 'streamGenerateContent?alt=sse' : 'generateContent')
}
