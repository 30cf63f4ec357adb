import { pickOne, type Random, shuffle } from './random.ts'
import { topicOf } from './topic.ts'

const OPENINGS = [
  (topic: string) => `The short version first: ${topic} rewards a little patience.`,
  (topic: string) => `There are several ways to look at ${topic}, and two of them matter here.`,
  (topic: string) => `When people ask about ${topic}, they usually want something they can act on.`,
  (topic: string) => `A good place to begin with ${topic} is what you already know for certain.`,
  (topic: string) => `Nothing about ${topic} is mysterious once its parts are laid side by side.`,
] as const

const MIDDLES = [
  (topic: string) => `Write down what you expect of ${topic} before you look at the numbers.`,
  () => 'Small steps win: change one thing, look at the result, and only then change the next.',
  (topic: string) => `Most surprises around ${topic} come from a number that somebody copied by hand.`,
  () => 'If two explanations fit equally well, keep the one that is easier to test.',
  (topic: string) => `It helps to separate the part of ${topic} that is fixed from the part that is habit.`,
  () => 'The cost of waiting a day is often smaller than the cost of guessing today.',
  () => 'Ask who will read the result, because that decides how much detail is worth having.',
  (topic: string) => `Somebody has probably met the same corner of ${topic} before and left notes.`,
  () => 'A picture on paper, however rough, tends to settle what a long discussion could not.',
] as const

const ENDINGS = [
  'Beyond that, the details depend on your case.',
  'That should be enough to get going.',
  'From there on it is mostly a matter of trying it out.',
] as const

const DISCLAIMER = 'This text was put together by a simulated model, so do not rely on it.'

const THOUGHTS = [
  () => 'I should say what matters first and keep it short.',
  (topic: string) => `What would a careful person want to know about ${topic}?`,
  () => 'What I was told decides, not what I expect.',
  () => 'One example is better than three definitions.',
] as const

/** Generates a few sentences about the message's topic; a greeting if it has none. */
export function prose(message: string, random: Random): string {
  const topic = topicOf(message)
  if (!topic)
    return `Hello! I am a simulated model. Ask me about anything, and I will answer with confidence.`
  const middles = shuffle(random, MIDDLES).slice(0, 2 + Math.floor(random() * 4))
  return [
    pickOne(random, OPENINGS)(topic),
    ...middles.map((sentence) => sentence(topic)),
    pickOne(random, ENDINGS),
    DISCLAIMER,
  ].join(' ')
}

/** Generates the thinking before a reply. */
export function generateThinking(message: string, random: Random): string {
  const topic = topicOf(message) ?? 'nothing in particular'
  const rest = shuffle(random, THOUGHTS).slice(0, 2)
  return [`The question is about ${topic}.`, ...rest.map((sentence) => sentence(topic))].join(' ')
}
