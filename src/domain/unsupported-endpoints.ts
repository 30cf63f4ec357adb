/**
 * Models for endpoints other than conversations and rerank: embeddings, moderation, images, video, speech,
 * transcription, live connections, and the task names of Midjourney and Suno.
 */
const PATTERNS: readonly RegExp[] = [
  /(?:^|[-._/])(?:embed|embeddings?|tts|transcribe|whisper|realtime|live|native-audio|moderation|ocr)(?:[-._]|$)/i,
  /(?:^|\/)(?:text-embedding|m3e|bge-(?!reranker)|e5-|gte-)/i,
  /(?:^|\/)(?:dall-e|gpt-image|chatgpt-image|imagen|flux|stable-diffusion|sd3|wanx?|cogview|seedream|mj_|midjourney)/i,
  /(?:^|\/)(?:sora|veo|kling|cogvideo|hailuo|runway|suno)/i,
  /(?:^|\/)(?:speech-0|canary-)/i,
]

/** Whether a model, by its name, belongs to endpoints that the gateway lacks. */
export function isForUnsupportedEndpoint(model: string): boolean {
  return PATTERNS.some((pattern) => pattern.test(model))
}
