import type { Detector } from './detector.ts'

export const SECRETS: Detector = { kind: 'SECRET', most: 256, forms: [{ source: 'sk-[a-z]{10,}' }] }
